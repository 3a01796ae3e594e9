package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
)

// observe reads what the plan depends on. Secrets and ConfigMaps are read from the API server; watches of their metadata repeat this when
// they change.
func (r *reconciler) observe(ctx context.Context, extension *operatorv1alpha1.Extension, garden *operatorv1alpha1.Garden) (*Inputs, error) {
	in := &Inputs{
		Extension: extension, Namespace: r.namespace, Deleting: extension.DeletionTimestamp != nil || garden == nil || garden.DeletionTimestamp != nil,
		Required: isTrue(extension, operatorv1alpha1.ExtensionRequiredRuntime), Charts: map[flow.Key][]byte{}, Definitions: map[flow.Key]bool{},
	}
	if garden != nil {
		in.Reconciled, in.Zones = isUp(garden), strings.Join(garden.Spec.RuntimeCluster.Provider.Zones, ",")
		in.Kubeconfig = garden.Annotations[constants.AnnotationGenericTokenKubeconfigSecretName]
	}
	if err := r.observeDefinitions(ctx, in); err != nil || in.Deleting {
		return in, err
	}
	if err := r.observeResources(ctx, in); err != nil {
		return in, err
	}
	helmRuntime, helmVirtual := admissionCharts(extension)
	if in.Reconciled && helmRuntime != nil && in.Kubeconfig == "" {
		return in, fmt.Errorf("the Garden has no annotation %s yet, which names the kubeconfig of its admission controller",
			constants.AnnotationGenericTokenKubeconfigSecretName)
	}
	var errs []error
	pull := func(wanted bool, key flow.Key, helm *operatorv1alpha1.ExtensionHelm) {
		if !wanted || helm == nil || helm.OCIRepository == nil {
			return
		}
		chart, err := r.chart(ctx, helm.OCIRepository)
		in.Charts[key], errs = chart, append(errs, err)
	}
	if one := deploymentOf(extension).ExtensionDeployment; one != nil {
		pull(in.Required && wantsRuntime(extension), runtimeKey(r.namespace, extension.Name), one.Helm)
		if in.Reconciled && one.Helm != nil {
			errs = append(errs, r.copySecrets(ctx, in, one.Helm.OCIRepository))
		}
	}
	pull(in.Reconciled, admissionVirtualKey(r.namespace, extension.Name), helmVirtual)
	pull(in.Reconciled, admissionRuntimeKey(r.namespace, extension.Name), helmRuntime)
	return in, errors.Join(errs...)
}

// isUp reports whether the virtual garden was reconciled once.
func isUp(garden *operatorv1alpha1.Garden) bool {
	last := garden.Status.LastOperation
	if garden.DeletionTimestamp != nil || last == nil || last.Type == corev1beta1.LastOperationTypeDelete {
		return false
	}
	return last.State == corev1beta1.LastOperationStateSucceeded || last.Type == corev1beta1.LastOperationTypeReconcile
}

func isTrue(extension *operatorv1alpha1.Extension, kind corev1beta1.ConditionType) bool {
	condition := corev1beta1.FindCondition(extension.Status.Conditions, kind)
	return condition != nil && condition.Status == corev1beta1.ConditionTrue
}

// observeDefinitions finds the ManagedResources with CustomResourceDefinitions.
func (r *reconciler) observeDefinitions(ctx context.Context, in *Inputs) error {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.client.List(ctx, list, client.InNamespace(r.namespace), ownerOf(in.Extension).Labels()); err != nil {
		return fmt.Errorf("list the ManagedResources of Extension %s: %w", in.Extension.Name, err)
	}
	for i := range list.Items {
		for _, entry := range list.Items[i].Status.Resources {
			if entry.Kind == "CustomResourceDefinition" {
				in.Definitions[flow.Key{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}] = true
			}
		}
	}
	return nil
}

// observeResources reads the Secrets and ConfigMaps to which values refer, and copies them for the virtual garden.
func (r *reconciler) observeResources(ctx context.Context, in *Inputs) error {
	in.Resources = values.Resources{Data: map[string]map[string]string{}, Confidential: map[string]bool{}, Of: "Extension " + in.Extension.Name}
	for _, resource := range deploymentOf(in.Extension).Resources {
		data := map[string]string{}
		switch name := resource.ResourceRef.Name; resource.ResourceRef.Kind {
		case "Secret":
			secret, err := r.secret(ctx, name, constants.RoleResourceReference)
			if err != nil {
				return err
			}
			for key, value := range secret.Data {
				data[key] = string(value)
			}
			in.Resources.Confidential[resource.Name] = true
			in.Copies = append(in.Copies, in.copyOf(secret))
		case "ConfigMap":
			configMap := &corev1.ConfigMap{}
			if err := r.named(ctx, name, configMap, constants.RoleResourceReference); err != nil {
				return err
			}
			data = configMap.Data
			in.Copies = append(in.Copies, &corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: in.copyMeta(configMap), Data: configMap.Data,
				BinaryData: configMap.BinaryData,
			})
		}
		in.Resources.Data[resource.Name] = data
	}
	return nil
}

// copySecrets copies the Secrets that gardenlets need to pull the chart.
func (r *reconciler) copySecrets(ctx context.Context, in *Inputs, from *gardencorev1.OCIRepository) error {
	credentials, authority, err := r.registrySecrets(ctx, from)
	for _, secret := range []*corev1.Secret{credentials, authority} {
		if secret != nil && err == nil {
			in.Copies = append(in.Copies, in.copyOf(secret))
		}
	}
	return err
}

func (in *Inputs) copyOf(secret *corev1.Secret) client.Object {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: in.copyMeta(secret), Type: secret.Type, Data: secret.Data,
	}
}

func (in *Inputs) copyMeta(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: in.copyName(object.GetName()), Labels: object.GetLabels()}
}

// chart pulls a chart.
func (r *reconciler) chart(ctx context.Context, from *gardencorev1.OCIRepository) ([]byte, error) {
	credentials, authority, err := r.registrySecrets(ctx, from)
	if err != nil {
		return nil, err
	}
	return r.pull(ctx, from, credentials, authority)
}

// registrySecrets reads the Secrets for an OCI repository, nil for those that it does not have.
func (r *reconciler) registrySecrets(ctx context.Context, from *gardencorev1.OCIRepository) (credentials, authority *corev1.Secret, err error) {
	if from.PullSecretRef != nil {
		if credentials, err = r.secret(ctx, from.PullSecretRef.Name, constants.RoleHelmPullSecret); err != nil {
			return nil, nil, err
		}
	}
	if from.CABundleSecretRef != nil {
		if authority, err = r.secret(ctx, from.CABundleSecretRef.Name, constants.RoleOCICABundle); err != nil {
			return nil, nil, err
		}
	}
	return credentials, authority, nil
}

func (r *reconciler) secret(ctx context.Context, name, role string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, r.named(ctx, name, secret, role)
}

// named reads an object with a role. Requiring the label prevents Extensions from reading other Secrets of the garden.
func (r *reconciler) named(ctx context.Context, name string, object client.Object, role string) error {
	err := r.live.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s/%s, to which the Extension refers, does not exist: create it", r.namespace, name)
	case err != nil:
		return fmt.Errorf("read %s/%s: %w", r.namespace, name, err)
	case object.GetLabels()[constants.LabelGardenRole] != role:
		return fmt.Errorf("%s/%s, to which the Extension refers, has no label %s=%s: add it", r.namespace, name, constants.LabelGardenRole, role)
	}
	return nil
}
