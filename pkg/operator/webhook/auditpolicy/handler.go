// Package auditpolicy checks the audit policies that a Garden refers to. With an invalid one, an API server would not start.
package auditpolicy

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/apiserverfiles"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

const (
	// Path is the path of the webhook.
	Path = "/webhooks/audit-policies"
	// Key is the key of a ConfigMap with an audit policy.
	Key = "policy"
)

// reference is the ConfigMap that a field of a Garden refers to.
type reference struct{ field, name string }

// New returns the handler. It checks the policies of a Garden that is created or refers to others, and a ConfigMap that changes if the
// Garden refers to it. The reader must read from the runtime cluster without a cache.
func New(reader client.Reader) admission.Handler {
	return admit.Validating(func(ctx context.Context, request *admission.Request) error {
		switch {
		case request.SubResource != "" || request.Operation == admissionv1.Delete:
			return nil
		case request.Kind.Kind == "Garden":
			return checkGarden(ctx, reader, request)
		}
		return checkConfigMap(ctx, reader, request)
	})
}

// policies returns the ConfigMaps with audit policies that a Garden refers to.
func policies(garden *v1alpha1.Garden) []reference {
	var all []reference
	add := func(field string, audit *corev1beta1.AuditConfig) {
		if audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil && audit.AuditPolicy.ConfigMapRef.Name != "" {
			all = append(all, reference{"spec.virtualCluster." + field + ".auditConfig.auditPolicy.configMapRef", audit.AuditPolicy.ConfigMapRef.Name})
		}
	}
	if server := garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer; server != nil {
		add("kubernetes.kubeAPIServer", server.AuditConfig)
	}
	if server := garden.Spec.VirtualCluster.Gardener.GardenerAPIServer; server != nil {
		add("gardener.gardenerAPIServer", server.AuditConfig)
	}
	return all
}

func checkGarden(ctx context.Context, reader client.Reader, request *admission.Request) error {
	garden, err := admit.Decode[v1alpha1.Garden](request, request.Object.Raw)
	if err != nil || garden.DeletionTimestamp != nil {
		return err
	}
	before := map[reference]bool{}
	if len(request.OldObject.Raw) > 0 {
		old, err := admit.Decode[v1alpha1.Garden](request, request.OldObject.Raw)
		if err != nil {
			return err
		}
		for _, one := range policies(old) {
			before[one] = true // a policy that has become invalid must not prevent other changes
		}
	}
	for _, one := range policies(garden) {
		if before[one] {
			continue
		}
		configMap := &corev1.ConfigMap{}
		switch err := reader.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: one.name}, configMap); {
		case apierrors.IsNotFound(err):
			return refuse(one, fmt.Errorf("it does not exist in namespace %s: create it first", constants.GardenNamespace))
		case err != nil:
			return fmt.Errorf("read ConfigMap %s/%s: %w", constants.GardenNamespace, one.name, err)
		}
		if err := check(configMap, one); err != nil {
			return err
		}
	}
	return nil
}

func checkConfigMap(ctx context.Context, reader client.Reader, request *admission.Request) error {
	configMap, err := admit.Decode[corev1.ConfigMap](request, request.Object.Raw)
	if err != nil {
		return err
	}
	old, err := admit.Decode[corev1.ConfigMap](request, request.OldObject.Raw)
	if err != nil || old.Data[Key] == configMap.Data[Key] || request.Namespace != constants.GardenNamespace {
		return err
	}
	gardens := &v1alpha1.GardenList{}
	if err := reader.List(ctx, gardens); err != nil {
		return fmt.Errorf("list the Gardens that may refer to ConfigMap %s/%s: %w", request.Namespace, request.Name, err)
	}
	for i := range gardens.Items {
		for _, one := range policies(&gardens.Items[i]) {
			if one.name != request.Name || gardens.Items[i].DeletionTimestamp != nil {
				continue
			}
			if err := check(configMap, one); err != nil {
				return err
			}
		}
	}
	return nil
}

func check(configMap *corev1.ConfigMap, of reference) error {
	content := configMap.Data[Key]
	if content == "" {
		return refuse(of, fmt.Errorf("it has no data with the key %s", Key))
	}
	if err := apiserverfiles.CheckAuditPolicy(content); err != nil {
		return refuse(of, err)
	}
	return nil
}

func refuse(of reference, err error) error {
	return admit.Refuse(http.StatusUnprocessableEntity, "ConfigMap %s, to which the Garden refers in %s: %w", of.name, of.field, err)
}
