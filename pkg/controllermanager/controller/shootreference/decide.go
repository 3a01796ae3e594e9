package shootreference

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
)

const (
	kindWorkloadIdentity = "WorkloadIdentity"
	// indexReference indexes Shoots by what they name, as "<kind>/<name>".
	indexReference = "reference"
)

// kinds are the kinds of objects that Shoots name.
var kinds = map[string]schema.GroupVersionKind{
	references.Secret:    {Version: "v1", Kind: references.Secret},
	references.ConfigMap: {Version: "v1", Kind: references.ConfigMap},
	kindWorkloadIdentity: securityv1alpha1.SchemeGroupVersion.WithKind(kindWorkloadIdentity),
}

// reference is an object in the namespace of a Shoot.
type reference struct{ kind, name string }

func (r reference) String() string { return r.kind + "/" + r.name }

// of returns what a Shoot names, without repetitions. A Shoot that is being deleted needs nothing after its gardenlet has released it.
func of(shoot *corev1beta1.Shoot) []reference {
	if released(shoot) {
		return nil
	}
	return named(shoot)
}

// released reports whether a Shoot is being deleted and its gardenlet has finished.
func released(shoot *corev1beta1.Shoot) bool {
	return shoot.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(shoot, constants.GardenerName)
}

// named returns what the specification of a Shoot names, without repetitions.
func named(shoot *corev1beta1.Shoot) []reference {
	secrets, configMaps := gardenletrights.Named(shoot)
	var found []reference
	for _, name := range secrets {
		found = append(found, reference{references.Secret, name})
	}
	for _, name := range configMaps {
		found = append(found, reference{references.ConfigMap, name})
	}
	add := func(apiVersion, kind, name string) {
		group := kinds[kindWorkloadIdentity].GroupKind()
		one := reference{kindWorkloadIdentity, name}
		if schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind() == group && name != "" && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	for _, resource := range shoot.Spec.Resources {
		add(resource.ResourceRef.APIVersion, resource.ResourceRef.Kind, resource.ResourceRef.Name)
	}
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			if ref := provider.CredentialsRef; ref != nil {
				add(ref.APIVersion, ref.Kind, ref.Name)
			}
		}
	}
	return found
}

// values returns the values of the index of a Shoot.
func values(object client.Object) (all []string) {
	if shoot, ok := object.(*corev1beta1.Shoot); ok {
		for _, one := range of(shoot) {
			all = append(all, one.String())
		}
	}
	return all
}

// step is what to do about the finalizer of a Shoot.
type step int

const (
	stepNone step = iota
	stepAdd
	// stepRelease releases the objects that the Shoot names, and then the Shoot.
	stepRelease
)

// decide returns what to do about the finalizer of a Shoot: it has one while it names objects.
func decide(shoot *corev1beta1.Shoot) step {
	has, needs := controllerutil.ContainsFinalizer(shoot, constants.FinalizerReferenceProtection), len(of(shoot)) > 0
	switch {
	case has && !needs:
		return stepRelease
	case !has && needs && shoot.DeletionTimestamp == nil:
		return stepAdd
	}
	return stepNone
}

// keep copies the fields on which decisions depend into a cached Shoot.
func keep(into, shoot *corev1beta1.Shoot) {
	references.Keep(into, shoot)
	for _, finalizer := range []string{constants.GardenerName, constants.FinalizerReferenceProtection} {
		if controllerutil.ContainsFinalizer(shoot, finalizer) {
			controllerutil.AddFinalizer(into, finalizer)
		}
	}
}
