package shoot

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// asked is when extensions were asked for a generation of a Shoot.
type asked struct {
	generation int64
	at         time.Time
}

// newDomains returns a cache of the Secrets of the garden with default domains.
func newDomains(garden cluster.Cluster) (cache.Cache, error) {
	selector := labels.SelectorFromSet(labels.Set{constants.LabelGardenRole: constants.RoleDefaultDomain})
	made, err := cache.New(garden.GetConfig(), cache.Options{
		HTTPClient: garden.GetHTTPClient(), Scheme: garden.GetScheme(), Mapper: garden.GetRESTMapper(), NewInformer: rewatch.NewInformer,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{constants.GardenNamespace: {LabelSelector: selector}}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the default domains: %w", err)
	}
	return made, nil
}

// reduceService keeps the addresses of a Service.
func reduceService(object any) (any, error) {
	service, is := object.(*corev1.Service)
	if !is {
		return object, nil
	}
	reduced := &corev1.Service{ObjectMeta: service.ObjectMeta}
	reduced.Annotations, reduced.ManagedFields = nil, nil
	reduced.Spec.Type, reduced.Spec.ClusterIPs, reduced.Status.LoadBalancer = service.Spec.Type, service.Spec.ClusterIPs, service.Status.LoadBalancer
	return reduced, nil
}

// observeExtensions reads what the garden declares of extensions, and how far their objects in the seed are.
func (r *reconciler) observeExtensions(ctx context.Context, in *Inputs) error {
	var registrations corev1beta1.ControllerRegistrationList
	if err := r.garden.List(ctx, &registrations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ControllerRegistrations of the garden: %w", err)
	}
	in.Registrations = append([]corev1beta1.ControllerRegistration{}, registrations.Items...)
	if err := r.observeDomains(ctx, in); err != nil {
		return err
	}
	in.Unfinished, in.RecordsMade = map[string]Unfinished{}, map[string]string{}
	for _, key := range in.Emitted {
		if key.Namespace != in.Namespace || !strings.HasPrefix(key.Name, prefixExtension) && !strings.HasPrefix(key.Name, prefixRecord) {
			continue
		}
		mr := &resourcesv1alpha1.ManagedResource{}
		err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ManagedResource %s: %w", key, err)
		}
		if err == nil {
			if err := in.observeAnswer(key, mr); err != nil {
				return err
			}
		}
	}
	r.observeAsked(in)
	if err := r.observeCluster(ctx, in); err != nil {
		return err
	}
	return r.observeService(ctx, in)
}

// observeCluster reads which generation of the Shoot the Cluster has that is applied.
func (r *reconciler) observeCluster(ctx context.Context, in *Inputs) error {
	key, mr := in.key(bundleNamespace), &resourcesv1alpha1.ManagedResource{}
	err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	// One that does not exist has no condition.
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if mr.Status.ObservedGeneration != mr.Generation || applied.Status != resourcesv1alpha1.ConditionTrue {
		return nil
	}
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	in.ClusterOf, _, err = live.Choice(in.Owner, key, choiceGeneration)
	return err
}

// observeAnswer takes from the ManagedResource of an object of an extension how far the extension is.
func (in *Inputs) observeAnswer(key flow.Key, mr *resourcesv1alpha1.ManagedResource) error {
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case mr.DeletionTimestamp != nil:
		in.Unfinished[key.Name] = Unfinished{Since: mr.DeletionTimestamp.Time, Deletion: true}
	case mr.Status.ObservedGeneration == mr.Generation && progressing.Status == resourcesv1alpha1.ConditionTrue:
		in.Unfinished[key.Name] = Unfinished{Since: progressing.LastTransitionTime.Time}
	}
	choices := map[string]string{}
	for _, name := range []string{choiceRecord, choiceAskedFor, choiceAskedAt} {
		value, _, err := live.Choice(in.Owner, key, name)
		if err != nil {
			return err
		}
		choices[name] = value
	}
	if record := choices[choiceRecord]; record != "" {
		in.RecordsMade[key.Name] = record
	}
	if at, err := time.Parse(time.RFC3339Nano, choices[choiceAskedAt]); err == nil && choices[choiceAskedFor] == in.generation() {
		in.Asked = at
	}
	return nil
}

// observeAsked decides when extensions are asked for this generation: when they were, or now. It is remembered, so that a pass that is made before the
// cache shows what was written does not ask again.
func (r *reconciler) observeAsked(in *Inputs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.asked[in.Owner.UID]; known.generation == in.Shoot.Generation && !known.at.IsZero() {
		in.Asked = known.at
		return
	}
	if in.Asked.IsZero() {
		in.Asked = in.Now
	}
	r.asked[in.Owner.UID] = asked{in.Shoot.Generation, in.Asked}
}

// observeService reads the addresses of the API server.
func (r *reconciler) observeService(ctx context.Context, in *Inputs) error {
	service := &corev1.Service{}
	err := r.caches.access.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: kubeapiserver.Name}, service)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the Service of the API server in namespace %s: %w", in.Namespace, err)
	}
	if err == nil && service.DeletionTimestamp == nil {
		in.Addresses = addressesOf(service)
	}
	return nil
}

// observeDomains reads the default domains of the garden, which count for Seeds without default domains of their own.
func (r *reconciler) observeDomains(ctx context.Context, in *Inputs) error {
	var secrets corev1.SecretList
	if err := r.domains.List(ctx, &secrets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the default domains of the garden: %w", err)
	}
	for _, secret := range secrets.Items {
		domain := Domain{
			Name: secret.Annotations[constants.AnnotationDNSDomain], Type: secret.Annotations[constants.AnnotationDNSProvider], Secret: client.ObjectKeyFromObject(&secret),
		}
		if zone := secret.Annotations[constants.AnnotationDNSZone]; zone != "" {
			domain.Zone = ptr.To(zone)
		}
		if domain.Name != "" && domain.Type != "" {
			in.DefaultDomains = append(in.DefaultDomains, domain)
		}
	}
	return nil
}

// observeReferences reads what the Shoot refers to, and the credentials of its DNS services. An object that does not exist, or that gardenlet may not read,
// holds up what needs it, and nothing else.
func (r *reconciler) observeReferences(ctx context.Context, in *Inputs) error {
	in.References = map[string]Referenced{}
	named := in.references()
	for _, record := range in.records() {
		if record.Problem == "" {
			named = append(named, record.Credentials)
		}
	}
	for _, each := range named {
		if _, known := in.References[each.String()]; known {
			continue
		}
		found := Referenced{}
		var object client.Object
		switch each.kind {
		case kindSecret:
			found.Secret = &corev1.Secret{}
			object = found.Secret
		case kindConfigMap:
			found.ConfigMap = &corev1.ConfigMap{}
			object = found.ConfigMap
		case kindWorkloadIdentity:
			found.WorkloadIdentity = &securityv1alpha1.WorkloadIdentity{}
			object = found.WorkloadIdentity
		default:
			in.References[each.String()] = found // the plan reports it
			continue
		}
		err := r.objects.Get(ctx, client.ObjectKey{Namespace: each.namespace, Name: each.name}, object)
		if client.IgnoreNotFound(err) != nil {
			found = Referenced{Unreadable: fmt.Sprintf("%s cannot be read: %v", each, err)}
		}
		if !apierrors.IsNotFound(err) {
			in.References[each.String()] = found
		}
	}
	return nil
}
