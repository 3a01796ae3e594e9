package validation

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Validate returns the errors of an object. live is the stored object, or the zero value if it is being created. It must
// not call other systems, because objects could not be written during their outages. Use
// [github.com/trellis-k8s/trellis/pkg/extension.ConfigValidator] instead.
type Validate[T client.Object] func(ctx context.Context, wanted, live T) field.ErrorList

// Handler returns the handler of a webhook that validates objects of a kind. It admits objects that are being deleted,
// because it must be possible to delete an object that a newer version would reject. It also admits updates that do not
// change the generation.
func Handler[T client.Object](newObject func() T, validate Validate[T]) http.Handler {
	return &admission.Webhook{Handler: admit.Validating(func(ctx context.Context, request *admission.Request) error {
		if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update || request.SubResource != "" {
			return nil
		}
		wanted, err := decode(newObject, request.Object.Raw)
		if err != nil {
			return err
		}
		if wanted.GetDeletionTimestamp() != nil {
			return nil
		}
		var live T
		if len(request.OldObject.Raw) > 0 {
			if live, err = decode(newObject, request.OldObject.Raw); err != nil {
				return err
			}
			if wanted.GetGeneration() != 0 && wanted.GetGeneration() == live.GetGeneration() {
				return nil
			}
		}
		return refusal(request, wanted.GetName(), validate(ctx, wanted, live))
	})}
}

func decode[T client.Object](newObject func() T, raw []byte) (T, error) {
	object := newObject()
	if err := json.Unmarshal(raw, object); err != nil {
		return object, admit.Refuse(http.StatusBadRequest, "the object cannot be read: its fields do not have the types of the API")
	}
	return object, nil
}

// refusal returns the response for errors, or nil if there are none.
func refusal(request *admission.Request, name string, all field.ErrorList) error {
	if len(all) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
	return admit.RefuseWith(apierrors.NewInvalid(kind, name, all).Status())
}

// prefixes are the prefixes of the labels that gardener sets on objects for the extensions that they use, by kind of extension.
var prefixes = map[string]string{
	"Infrastructure": constants.LabelPrefixProviderExtension, "ControlPlane": constants.LabelPrefixProviderExtension,
	"Worker": constants.LabelPrefixProviderExtension, "Bastion": constants.LabelPrefixProviderExtension,
	"BackupBucket": constants.LabelPrefixProviderExtension, "BackupEntry": constants.LabelPrefixProviderExtension,
	"DNSRecord": constants.LabelPrefixDNSRecordExtension, "Network": constants.LabelPrefixNetworkingExtension,
	"OperatingSystemConfig": constants.LabelPrefixOperatingSystemConfigExtension,
	"ContainerRuntime":      constants.LabelPrefixContainerRuntimeExtension, "Extension": constants.LabelPrefixExtension,
	"SelfHostedShootExposure": constants.LabelPrefixSelfHostedShootExposureExtension,
}

// ObjectSelector selects the Shoots, Seeds, CloudProfiles, WorkloadIdentities and so on that use an extension of a kind
// and type. Guideline: admission webhooks are only called for objects that use the extension.
func ObjectSelector(kind, ofType string) (*metav1.LabelSelector, error) {
	prefix, known := prefixes[kind]
	if !known {
		return nil, fmt.Errorf("objects have no labels for extensions of kind %s", kind)
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{prefix + ofType: "true"}}, nil
}

// MatchConditions restrict a webhook to objects of a type that are created or whose spec changes, and that are not being
// deleted. They do not need labels, which not every API server sets. An outage of the webhook only affects such writes.
// path is the path of the field with the type, for example "spec.provider.type".
func MatchConditions(path, ofType string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{
			Name:       "uses-extension",
			Expression: fmt.Sprintf(`object.?%s.orValue("") == %s`, strings.ReplaceAll(path, ".", ".?"), strconv.Quote(ofType)),
		},
		{Name: "spec-changes", Expression: "oldObject == null || object.spec != oldObject.spec"},
		{Name: "stays", Expression: "!has(object.metadata.deletionTimestamp)"},
	}
}
