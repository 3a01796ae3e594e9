package seed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// classSeed is the class of the ManagedResources that gardenlet emits.
const classSeed = "seed"

// autoscalerKind is the CustomResourceDefinition of VerticalPodAutoscalers.
const autoscalerKind = "verticalpodautoscalers.autoscaling.k8s.io"

// observe reads the inputs of the plan. Objects in the seed are read from caches. If nothing has changed, no request is
// sent, except that the facts are read again from time to time.
func (p *pass) observe(ctx context.Context) error {
	r, seed := p.reconciler, p.seed
	facts, err := r.facts.Get(ctx)
	if err != nil {
		return err
	}
	p.in = Inputs{
		Owner: r.owner(seed), Namespace: r.options.Namespace, Class: classSeed, Seed: seed, Config: r.options.Config, Version: r.options.Version,
		Images: r.images, KubernetesVersion: facts.Version, IsGarden: facts.IsGarden, HasIstio: facts.HasIstio, OperatorVersion: facts.OperatorVersion,
		IsShoot:  seed.Labels[constants.LabelSelfHostedShootCluster] == "true",
		Deleting: seed.DeletionTimestamp != nil, Now: p.Wake.Now,
	}
	readAll := r.objects.Begin(r.user())
	steps := []func(context.Context, *Inputs) error{
		r.observeEmitted, r.observeIdentity, r.observeCluster, r.observeGateways, r.observeExtensions, r.observeBucket,
	}
	if p.in.Deleting {
		steps = append(steps, r.observeUsers, r.observeInstances)
	} else {
		steps = append(steps, r.observeReferences, r.observeSecrets)
	}
	for _, step := range steps {
		if err := step(ctx, &p.in); err != nil {
			return err
		}
	}
	readAll()
	return nil
}

// user returns the Seed as the user of the objects of the garden that are read for it.
func (r *reconciler) user() gardenobjects.User {
	return gardenobjects.User{Kind: "Seed", ObjectKey: client.ObjectKey{Name: r.options.SeedName}}
}

func (r *reconciler) owner(seed *corev1beta1.Seed) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: seed.UID, Name: seed.Name}
}

func (r *reconciler) observeEmitted(ctx context.Context, in *Inputs) error {
	var err error
	if in.Emitted, err = flow.Emitted(ctx, r.emitter.Reader, in.Owner); err != nil {
		return err
	}
	in.Kept = map[flow.Key]bool{}
	for _, key := range in.Emitted {
		var mr resourcesv1alpha1.ManagedResource
		err := r.cache.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &mr)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ManagedResource %s: %w", key, err)
		}
		in.Kept[key] = err == nil && ptr.Deref(mr.Spec.KeepObjects, false)
		if err == nil && key.Name == bundleRecord {
			live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: &mr}}
			if in.recordMade, _, err = live.Choice(in.Owner, key, choiceRecord); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeIdentity reads the identity of the cluster: from the status of the Seed, from the ConfigMap, or else the UID
// of the namespace kube-system.
func (r *reconciler) observeIdentity(ctx context.Context, in *Inputs) error {
	var object corev1.ConfigMap
	err := r.cache.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentityName}, &object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the identity of the cluster: %w", err)
	}
	in.IdentityOrigin, in.Identity = object.Data[constants.ClusterIdentityOrigin], object.Data[constants.ClusterIdentityName]
	if recorded := in.Seed.Status.ClusterIdentity; recorded != nil && *recorded != "" {
		in.Identity = *recorded
	}
	if in.Identity != "" {
		return nil
	}
	var system corev1.Namespace
	if err := r.uncached.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return fmt.Errorf("read the namespace kube-system for the identity of the cluster: %w", err)
	}
	in.Identity = string(system.UID)
	return nil
}

// observeCluster reads the API server addresses, the number of nodes and whether VerticalPodAutoscalers are defined.
func (r *reconciler) observeCluster(ctx context.Context, in *Inputs) error {
	var endpoints discoveryv1.EndpointSliceList
	if err := r.cache.List(ctx, &endpoints, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return fmt.Errorf("list the endpoints of the API server: %w", err)
	}
	in.APIServers = networkpolicies.APIServers(endpoints.Items)
	slices.SortFunc(in.APIServers, netip.AddrPort.Compare)
	nodes := metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	in.Nodes = len(nodes.Items)
	var definition apiextensionsv1.CustomResourceDefinition
	err := r.cache.Get(ctx, client.ObjectKey{Name: autoscalerKind}, &definition, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the definition %s: %w", autoscalerKind, err)
	}
	in.HasVerticalPodAutoscaler = ptr.To(err == nil)
	return nil
}

// observeGateways reads which gateways the Services of API servers name, and the addresses of the Service that serves the domain for Ingresses.
func (r *reconciler) observeGateways(ctx context.Context, in *Inputs) error {
	var services corev1.ServiceList
	if err := r.cache.List(ctx, &services, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Services of API servers and gateways: %w", err)
	}
	in.usedGateways = gatewaysOf(services.Items)
	serving := in.servesIngress()
	for i := range services.Items {
		service := &services.Items[i]
		if client.ObjectKeyFromObject(service) == serving && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
			in.ingressAddresses = dnsvalues.AddressesOf(service)
		}
	}
	return nil
}

// gatewaysOf returns the namespaces of the gateways that the Services of API servers name, sorted. Other Services can have the same annotation.
func gatewaysOf(services []corev1.Service) []string {
	used, servers := []string{}, labels.SelectorFromSet(kubeapiserver.Labels())
	for i := range services {
		if servers.Matches(labels.Set(services[i].Labels)) {
			used = append(used, kubeapiserver.GatewaysOf(&services[i])...)
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

func (r *reconciler) observeExtensions(ctx context.Context, in *Inputs) error {
	var registrations corev1beta1.ControllerRegistrationList
	var installations corev1beta1.ControllerInstallationList
	if err := errors.Join(r.garden.List(ctx, &registrations), r.garden.List(ctx, &installations)); err != nil {
		return fmt.Errorf("list the extensions of the garden: %w", err)
	}
	elsewhere := func(installation corev1beta1.ControllerInstallation) bool {
		return installation.Spec.SeedRef == nil || installation.Spec.SeedRef.Name != in.Seed.Name
	}
	in.Extensions = &Extensions{Registrations: registrations.Items, Installations: slices.DeleteFunc(installations.Items, elsewhere)}
	return nil
}

func (r *reconciler) observeBucket(ctx context.Context, in *Inputs) error {
	var bucket corev1beta1.BackupBucket
	err := r.garden.Get(ctx, client.ObjectKey{Name: BucketName(in.Seed)}, &bucket)
	if err == nil {
		in.Bucket = &bucket
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read BackupBucket %s: %w", BucketName(in.Seed), err)
	}
	return nil
}

// observeReferences reads the objects of the garden to which the Seed refers: those listed in spec.resources, and the credentials of its DNS service. An
// object that does not exist is unknown.
func (r *reconciler) observeReferences(ctx context.Context, in *Inputs) error {
	in.References = map[string]Reference{}
	for _, named := range in.Seed.Spec.Resources {
		reference, exists, err := r.reference(ctx, named.ResourceRef.Kind, client.ObjectKey{Namespace: constants.GardenNamespace, Name: named.ResourceRef.Name})
		if err != nil {
			return fmt.Errorf("spec.resources: %w", err)
		}
		if exists {
			in.References[named.Name] = reference
		}
	}
	if provider := in.Seed.Spec.DNS.Provider; provider != nil && provider.CredentialsRef != nil {
		ref := provider.CredentialsRef
		reference, exists, err := r.reference(ctx, ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return fmt.Errorf("spec.dns.provider.credentialsRef: %w", err)
		}
		if exists {
			in.dnsCredentials = &reference
		}
	}
	return nil
}

// reference reads an object of the garden, and reports whether it exists. That of another kind is empty, and the plan reports it.
func (r *reconciler) reference(ctx context.Context, kind string, key client.ObjectKey) (Reference, bool, error) {
	var reference Reference
	var object client.Object
	switch kind {
	case "Secret":
		reference.Secret = &corev1.Secret{}
		object = reference.Secret
	case "ConfigMap":
		reference.ConfigMap = &corev1.ConfigMap{}
		object = reference.ConfigMap
	case "WorkloadIdentity":
		reference.WorkloadIdentity = &securityv1alpha1.WorkloadIdentity{}
		object = reference.WorkloadIdentity
	default:
		return reference, true, nil
	}
	err := r.objects.Get(ctx, r.user(), key, object)
	if client.IgnoreNotFound(err) != nil {
		return reference, false, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return reference, err == nil, nil
}

// observeSecrets generates the Secrets of the components and reads them.
func (r *reconciler) observeSecrets(ctx context.Context, in *Inputs) error {
	result, err := r.secrets.Ensure(ctx, secrets.Wanted{Configs: in.secretConfigs()})
	if err != nil {
		return err
	}
	in.Secrets, in.SecretsRenewed = result.Items, result.Next
	r.unused = len(result.Unused)
	return nil
}

// observeUsers lists the objects that refer to a Seed that is being deleted, from the garden's API server.
func (r *reconciler) observeUsers(ctx context.Context, in *Inputs) error {
	users := []string{}
	var shoots corev1beta1.ShootList
	if err := r.gardenUncached.List(ctx, &shoots, client.MatchingLabels{constants.LabelPrefixSeedName + in.Seed.Name: "true"}); err != nil {
		return fmt.Errorf("list the Shoots of the Seed: %w", err)
	}
	for _, shoot := range shoots.Items {
		users = append(users, "Shoot "+shoot.Namespace+"/"+shoot.Name)
	}
	var buckets corev1beta1.BackupBucketList
	if err := r.gardenUncached.List(ctx, &buckets, client.MatchingFields{"spec.seedName": in.Seed.Name}); err != nil {
		return fmt.Errorf("list the BackupBuckets of the Seed: %w", err)
	}
	for _, bucket := range buckets.Items {
		if bucket.Name != BucketName(in.Seed) {
			users = append(users, "BackupBucket "+bucket.Name)
		}
	}
	var entries corev1beta1.BackupEntryList
	// As of Shoots, also those that the Seed has not given up yet.
	if err := r.gardenUncached.List(ctx, &entries, client.MatchingLabels{constants.LabelPrefixSeedName + in.Seed.Name: "true"}); err != nil {
		return fmt.Errorf("list the BackupEntries of the Seed: %w", err)
	}
	for _, entry := range entries.Items {
		users = append(users, "BackupEntry "+entry.Namespace+"/"+entry.Name)
	}
	slices.Sort(users)
	in.Users = &users
	return nil
}

// observeInstances lists the remaining objects of the kinds that the flow defines before it deletes the definitions.
func (r *reconciler) observeInstances(ctx context.Context, in *Inputs) error {
	stages := in.stages()
	if len(stages[stageComponents])+len(stages[stageBase]) > 0 || len(stages[stageDefinitions]) == 0 {
		return nil
	}
	instances := []string{}
	for _, key := range stages[stageDefinitions] {
		definitions, err := in.definitions(key.Name)()
		if err != nil {
			return err
		}
		for _, definition := range definitions {
			found, err := r.instancesOf(ctx, definition.GetName())
			if err != nil {
				return err
			}
			instances = append(instances, found...)
		}
	}
	slices.Sort(instances)
	in.Instances = &instances
	return nil
}

// instancesOf returns the names of up to five objects of a definition.
func (r *reconciler) instancesOf(ctx context.Context, name string) ([]string, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := r.uncached.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if definition.DeletionTimestamp != nil || len(definition.Spec.Versions) == 0 {
		return nil, nil
	}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: definition.Spec.Group, Version: definition.Spec.Versions[0].Name, Kind: definition.Spec.Names.ListKind,
	})
	err := r.uncached.List(ctx, &list, client.Limit(5))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the objects of %s: %w", name, err)
	}
	var names []string
	for _, item := range list.Items {
		text := definition.Spec.Names.Kind + " " + item.Name
		if item.Namespace != "" {
			text = definition.Spec.Names.Kind + " " + item.Namespace + "/" + item.Name
		}
		names = append(names, text)
	}
	return names, nil
}
