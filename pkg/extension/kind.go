package extension

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Timeouts of one call of an actuator, which are Gardener's.
const (
	defaultTimeout = 3 * time.Minute
	// longTimeout is for kinds that create machines or networks.
	longTimeout = 20 * time.Minute
)

// kind describes the properties of a kind.
type kind struct {
	schema.GroupVersionKind
	// finalizer of an object and of the Secret to which it refers.
	finalizer string
	timeout   time.Duration
	// ofShoots is set if objects can belong to Shoots.
	ofShoots bool
	// clusterScoped is set if objects have no namespace.
	clusterScoped bool
}

// newObject returns an empty object of a kind.
func newObject[T extensionsv1alpha1.Object]() (T, error) {
	var none T
	of := reflect.TypeFor[T]()
	if of.Kind() != reflect.Pointer {
		return none, fmt.Errorf("%s is not a pointer to a kind", of)
	}
	object, is := reflect.New(of.Elem()).Interface().(T)
	if !is {
		return none, fmt.Errorf("%s is not a kind", of)
	}
	return object, nil
}

// kindOf describes the kind of an object, for objects of a type.
func kindOf(object extensionsv1alpha1.Object, ofType string, scheme *runtime.Scheme) (kind, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return kind{}, fmt.Errorf("the scheme does not have %T: %w", object, err)
	}
	k := kind{GroupVersionKind: gvk, timeout: defaultTimeout, ofShoots: true}
	name := strings.ToLower(gvk.Kind)
	switch object.(type) {
	case *extensionsv1alpha1.Extension:
		name = ofType
	case *extensionsv1alpha1.ContainerRuntime:
		name += "-" + ofType
	case *extensionsv1alpha1.OperatingSystemConfig:
		name += "s"
	case *extensionsv1alpha1.Infrastructure, *extensionsv1alpha1.Worker, *extensionsv1alpha1.Bastion:
		k.timeout = longTimeout
	case *extensionsv1alpha1.BackupBucket:
		k.ofShoots, k.clusterScoped = false, true
	case *extensionsv1alpha1.BackupEntry:
		k.clusterScoped = true
	}
	k.finalizer = constants.PrefixExtensionFinalizer + name
	return k, nil
}

// newList returns an empty list of objects of the kind.
func (k kind) newList(scheme *runtime.Scheme) (client.ObjectList, error) {
	list, err := scheme.New(k.GroupVersion().WithKind(k.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("the scheme does not have lists of %s: %w", k.Kind, err)
	}
	objects, is := list.(client.ObjectList)
	if !is {
		return nil, fmt.Errorf("%T is not a list", list)
	}
	return objects, nil
}

// secretRef returns the reference of an object to the Secret with its credentials, or nil if it has none.
func secretRef(object extensionsv1alpha1.Object) *corev1.SecretReference {
	var ref corev1.SecretReference
	switch object := object.(type) {
	case *extensionsv1alpha1.BackupBucket:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.BackupEntry:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.ControlPlane:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.DNSRecord:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.Infrastructure:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.Worker:
		ref = object.Spec.SecretRef
	case *extensionsv1alpha1.SelfHostedShootExposure:
		if credentials := object.Spec.CredentialsRef; credentials != nil {
			ref = corev1.SecretReference{Namespace: object.Namespace, Name: credentials.Name}
		}
	}
	if ref.Name == "" {
		return nil
	}
	return &ref
}
