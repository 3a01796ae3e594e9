package shoot

import (
	"context"
	"fmt"
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
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// asked is when extensions were requested to reconcile a generation of a Shoot.
type asked struct {
	generation int64
	at         time.Time
}

// newDomains returns a cache of the Secrets of the garden with default domains, and with the host of managed issuers. The garden's
// controller-manager copies them from namespace garden, whose other Secrets gardenlets may not list, to the namespace of the Seed.
func newDomains(garden cluster.Cluster, seed string) (cache.Cache, error) {
	selector, err := labels.Parse(constants.LabelGardenRole + " in (" + constants.RoleDefaultDomain + ", " + constants.RoleShootServiceAccountIssuer + ")")
	if err != nil {
		return nil, fmt.Errorf("make a cache of the default domains: %w", err)
	}
	return watches.NewCache(garden, "the default domains", cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{constants.PrefixSeedNamespace + seed: {LabelSelector: selector}}},
		},
	})
}

// reduceService removes all fields of a Service except its type and addresses.
func reduceService(object any) (any, error) {
	service, is := object.(*corev1.Service)
	if !is {
		return object, nil
	}
	return dnsvalues.Reduce(service), nil
}

// observeExtensions reads the registrations of extensions, and the state of their objects in the seed.
func (r *reconciler) observeExtensions(ctx context.Context, in *Inputs) error {
	var registrations corev1beta1.ControllerRegistrationList
	if err := r.garden.List(ctx, &registrations, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ControllerRegistrations of the garden: %w", err)
	}
	in.Registrations = append([]corev1beta1.ControllerRegistration{}, registrations.Items...)
	if err := r.observeDomains(ctx, in); err != nil {
		return err
	}
	in.Unfinished, in.RecordsMade, in.Unapplied = map[string]Unfinished{}, map[string]string{}, map[string]bool{}
	for _, key := range in.Emitted {
		if key.Namespace != in.Namespace || !isOperation(key.Name) {
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
	return r.observeExposure(ctx, in)
}

// observeCluster reads the generation of the Shoot in the applied Cluster.
func (r *reconciler) observeCluster(ctx context.Context, in *Inputs) error {
	key, mr := in.key(bundleNamespace), &resourcesv1alpha1.ManagedResource{}
	err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	// A ManagedResource that does not exist has no conditions.
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if mr.Status.ObservedGeneration != mr.Generation || applied.Status != resourcesv1alpha1.ConditionTrue {
		return nil
	}
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	in.ClusterOf, _, err = live.Choice(in.Owner, key, choiceGeneration)
	return err
}

// observeAnswer reads the progress of an extension from the ManagedResource of its object.
func (in *Inputs) observeAnswer(key flow.Key, mr *resourcesv1alpha1.ManagedResource) error {
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case mr.DeletionTimestamp != nil:
		in.Unfinished[key.Name] = Unfinished{Since: mr.DeletionTimestamp.Time, Deletion: true}
	case mr.Status.ObservedGeneration == mr.Generation && progressing.Status == resourcesv1alpha1.ConditionTrue:
		in.Unfinished[key.Name] = Unfinished{Since: progressing.LastTransitionTime.Time}
	}
	in.Unapplied[key.Name] = flow.NeverApplied(mr)
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

// observeAsked sets the time at which extensions are requested to reconcile this generation of the Shoot: the time of an
// earlier request, or now. The time is also kept in memory, so that a reconcile with an outdated cache does not request
// another operation.
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

// observeDomains reads the default domains of the garden, which apply to Seeds without their own, and the host of managed issuers.
func (r *reconciler) observeDomains(ctx context.Context, in *Inputs) error {
	var secrets corev1.SecretList
	if err := r.domains.List(ctx, &secrets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the default domains of the garden: %w", err)
	}
	in.readGarden(secrets.Items)
	return nil
}

// readGarden takes the default domains and the host of managed issuers from Secrets of the garden.
func (in *Inputs) readGarden(secrets []corev1.Secret) {
	var hosts []corev1.Secret
	for _, secret := range secrets {
		if secret.Labels[constants.LabelGardenRole] == constants.RoleShootServiceAccountIssuer {
			hosts = append(hosts, secret)
			continue
		}
		domain := Domain{
			Name: secret.Annotations[constants.AnnotationDNSDomain], Type: secret.Annotations[constants.AnnotationDNSProvider],
			Secret: client.ObjectKeyFromObject(&secret),
		}
		if zone := secret.Annotations[constants.AnnotationDNSZone]; zone != "" {
			domain.Zone = ptr.To(zone)
		}
		if domain.Name != "" && domain.Type != "" {
			in.DefaultDomains = append(in.DefaultDomains, domain)
		}
	}
	in.IssuerHost, in.IssuerProblem = issuer.Host(hosts)
}

// observeReferences reads the objects in spec.resources and the credentials of DNS services. An object that does not
// exist, or that gardenlet is not permitted to read, holds only the bundles that need it.
func (r *reconciler) observeReferences(ctx context.Context, in *Inputs) error {
	in.References = map[string]Referenced{}
	named := append(in.references(), in.Credentials...)
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
		err := r.objects.Get(ctx, in.user(), client.ObjectKey{Namespace: each.namespace, Name: each.name}, object)
		if client.IgnoreNotFound(err) != nil {
			found = Referenced{Unreadable: fmt.Sprintf("%s cannot be read: %v", each, err)}
		}
		if !apierrors.IsNotFound(err) {
			in.References[each.String()] = found
		}
	}
	return nil
}
