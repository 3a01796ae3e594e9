// Package admission checks the provider configurations of CloudProfiles and Shoots with this infrastructure, before the garden's API server stores
// them. It reads only what is in the request: see Gardener's guidelines for the validation by extensions.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/validation"
	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// Webhooks returns the webhooks for the garden's API server. It calls them for objects with this infrastructure alone.
func Webhooks() []webhook.Webhook {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelPrefixProviderExtension + local.Type: "true"}}
	rule := func(resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{gardencorev1beta1.GroupName}, APIVersions: []string{"v1beta1"}, Resources: []string{resource},
				Scope: ptr.To(admissionregistrationv1.AllScopes),
			},
		}}
	}
	return []webhook.Webhook{
		{Name: "cloudprofiles", Validating: true, Rules: rule("cloudprofiles"), ObjectSelector: selector, Handler: handler(checkCloudProfile)},
		{Name: "shoots", Validating: true, Rules: rule("shoots"), ObjectSelector: selector, Handler: handler(checkShoot)},
	}
}

// handler answers with what a function finds wrong with the object of a request. The old object is nil for one that is created.
func handler[T any](check func(object, old *T) field.ErrorList) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		object, err := decode[T](request.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		var old *T
		if request.Operation == admissionv1.Update {
			if old, err = decode[T](request.OldObject.Raw); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
		}
		if errs := check(object, old); len(errs) > 0 {
			return admission.Denied(errs.ToAggregate().Error())
		}
		return admission.Allowed("")
	})}
}

func decode[T any](raw []byte) (*T, error) {
	if len(raw) == 0 {
		return nil, errors.New("the request has no object")
	}
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode the object of the request: %w", err)
	}
	return object, nil
}

// checkCloudProfile checks the providerConfig of a CloudProfile. One that is being deleted stays as it is.
func checkCloudProfile(profile, _ *gardencorev1beta1.CloudProfile) field.ErrorList {
	path := field.NewPath("spec", "providerConfig")
	if profile.Spec.Type != local.Type || profile.DeletionTimestamp != nil {
		return nil
	}
	config, errs := read[providerlocalv1alpha1.CloudProfileConfig](profile.Spec.ProviderConfig, path)
	if len(errs) > 0 {
		return errs
	}
	if config == nil {
		return field.ErrorList{field.Required(path, "must name the container images of the machine images")}
	}
	return validation.ValidateCloudProfileConfig(config, profile.Spec.MachineImages, path)
}

// read decodes a configuration strictly.
func read[T any, P interface {
	*T
	runtime.Object
}](raw *runtime.RawExtension, path *field.Path) (P, field.ErrorList) {
	config, err := providerlocalv1alpha1.Decode[T, P](raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return config, nil
}

// checkShoot checks the configurations of a Shoot for its infrastructure, its control plane and its worker pools.
func checkShoot(shoot, old *gardencorev1beta1.Shoot) field.ErrorList {
	if shoot.Spec.Provider.Type != local.Type || shoot.DeletionTimestamp != nil {
		return nil
	}
	provider := field.NewPath("spec", "provider")
	errs := checkInfrastructure(shoot, old, provider.Child("infrastructureConfig"))
	_, more := read[providerlocalv1alpha1.ControlPlaneConfig](shoot.Spec.Provider.ControlPlaneConfig, provider.Child("controlPlaneConfig"))
	errs = append(errs, more...)
	workers := provider.Child("workers")
	for i, worker := range shoot.Spec.Provider.Workers {
		path := workers.Index(i).Child("providerConfig")
		config, more := read[providerlocalv1alpha1.WorkerConfig](worker.ProviderConfig, path)
		errs = append(errs, more...)
		if config != nil {
			errs = append(errs, validation.ValidateWorkerConfig(config, path)...)
		}
	}
	return append(errs, validation.ValidateWorkers(shoot.Spec.Provider.Workers, workers)...)
}

func checkInfrastructure(shoot, old *gardencorev1beta1.Shoot, path *field.Path) field.ErrorList {
	config, errs := read[providerlocalv1alpha1.InfrastructureConfig](shoot.Spec.Provider.InfrastructureConfig, path)
	if len(errs) > 0 {
		return errs
	}
	if config != nil {
		var pods, services string
		if networking := shoot.Spec.Networking; networking != nil {
			pods, services = ptr.Deref(networking.Pods, ""), ptr.Deref(networking.Services, "")
		}
		errs = validation.ValidateInfrastructureConfig(config, pods, services, path)
	}
	if old == nil {
		return errs
	}
	before, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.InfrastructureConfig](old.Spec.Provider.InfrastructureConfig)
	if err != nil {
		return errs // it cannot be compared with one that was never valid
	}
	return append(errs, validation.ValidateInfrastructureConfigUpdate(config, before, path)...)
}
