package apiserver

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenadmission "github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// factsTimeout is the time that a request waits for facts that are not known yet, counted from its arrival, because it may need several
// kinds one after the other.
const factsTimeout = 10 * time.Second

// facts are the informers behind the facts of admission plugins.
type facts struct {
	live      client.Client
	stored    storages
	informers []toolscache.SharedIndexInformer
	// only selects the objects. It is empty for all objects.
	only client.ListOptions
}

// newGarden returns the facts for admission plugins, and the hook that starts to fill them.
func newGarden(config *server.RecommendedConfig, stored storages) (*gardenadmission.Garden, server.PostStartHookFunc, error) {
	live, err := newLoopbackClient(config.LoopbackClientConfig)
	if err != nil {
		return nil, nil, err
	}
	kube, err := client.New(kubeConnection(config), client.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the garden: %w", err)
	}
	f := &facts{live: live, stored: stored}
	garden := &gardenadmission.Garden{Live: live, Kube: kube, Authorizer: config.Authorization.Authorizer, Now: time.Now}
	f.addReaders(garden)
	if garden.Secret, err = secretReader(kubeConnection(config)); err != nil {
		return nil, nil, err
	}
	for _, informer := range f.informers {
		if informer == nil {
			return nil, nil, fmt.Errorf("set up the indexes of admission plugins")
		}
	}
	return garden, f.run, nil
}

// run is the hook that starts the informers.
func (f *facts) run(hook server.PostStartHookContext) error {
	for _, informer := range f.informers {
		go informer.RunWithContext(hook)
	}
	return nil
}

// kubeConnection returns the connection to the garden's kube-apiserver. Requests of users wait for its answers, so this server does not
// limit them: by default, a client sends five in a second, and only five Shoots could be bound in a second. kube-apiserver limits its clients.
func kubeConnection(config *server.RecommendedConfig) *rest.Config {
	connection := rest.CopyConfig(config.ClientConfig)
	connection.QPS = -1
	return connection
}

// secretReader returns a function that reads a Secret of the garden's kube-apiserver.
func secretReader(config *rest.Config) (func(context.Context, string, string) (*corev1.Secret, error), error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the garden: %w", err)
	}
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		ctx, cancel := context.WithTimeout(ctx, factsTimeout)
		defer cancel()
		secret, err := kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, gardenadmission.Unavailable("read the Secret %s/%s: %v", namespace, name, err)
		}
		return secret, err
	}, nil
}

func (f *facts) addReaders(garden *gardenadmission.Garden) {
	garden.BackupBuckets = reader(f, gardencorev1beta1.Resource("backupbuckets"), &gardencorev1beta1.BackupBucketList{}, &gardencorev1beta1.BackupBucket{}, nil)
	garden.CloudProfiles = reader(f, gardencorev1beta1.Resource("cloudprofiles"), &gardencorev1beta1.CloudProfileList{}, &gardencorev1beta1.CloudProfile{}, nil)
	garden.ClusterOIDCPresets = reader(f, settingsv1alpha1.Resource("clusteropenidconnectpresets"), &settingsv1alpha1.ClusterOpenIDConnectPresetList{}, &settingsv1alpha1.ClusterOpenIDConnectPreset{}, nil,
		gardenadmission.ClusterOIDCPresetsAll)
	garden.ControllerRegistrations = reader(f, gardencorev1beta1.Resource("controllerregistrations"), &gardencorev1beta1.ControllerRegistrationList{}, &gardencorev1beta1.ControllerRegistration{}, nil,
		gardenadmission.ControllerRegistrationsByResource, gardenadmission.ControllerRegistrationsByAutoEnable)
	garden.CredentialsBindings = reader(f, securityv1alpha1.Resource("credentialsbindings"), &securityv1alpha1.CredentialsBindingList{}, &securityv1alpha1.CredentialsBinding{}, nil,
		gardenadmission.CredentialsBindingsByQuota)
	garden.ExposureClasses = reader(f, gardencorev1beta1.Resource("exposureclasses"), &gardencorev1beta1.ExposureClassList{}, &gardencorev1beta1.ExposureClass{}, nil)
	garden.ManagedSeeds = reader(f, seedmanagementv1alpha1.Resource("managedseeds"), &seedmanagementv1alpha1.ManagedSeedList{}, &seedmanagementv1alpha1.ManagedSeed{}, nil, gardenadmission.ManagedSeedsByShoot)
	garden.NamespacedCloudProfiles = reader(f, gardencorev1beta1.Resource("namespacedcloudprofiles"), &gardencorev1beta1.NamespacedCloudProfileList{}, &gardencorev1beta1.NamespacedCloudProfile{}, nil)
	garden.OIDCPresets = reader(f, settingsv1alpha1.Resource("openidconnectpresets"), &settingsv1alpha1.OpenIDConnectPresetList{}, &settingsv1alpha1.OpenIDConnectPreset{}, nil,
		gardenadmission.OIDCPresetsByNamespace)
	garden.Projects = reader(f, gardencorev1beta1.Resource("projects"), &gardencorev1beta1.ProjectList{}, &gardencorev1beta1.Project{}, nil, gardenadmission.ProjectsByNamespace)
	garden.Quotas = reader(f, gardencorev1beta1.Resource("quotas"), &gardencorev1beta1.QuotaList{}, &gardencorev1beta1.Quota{}, nil)
	garden.SecretBindings = reader(f, gardencorev1beta1.Resource("secretbindings"), &gardencorev1beta1.SecretBindingList{}, &gardencorev1beta1.SecretBinding{}, nil, gardenadmission.SecretBindingsByQuota)
	garden.Seeds = reader(f, gardencorev1beta1.Resource("seeds"), &gardencorev1beta1.SeedList{}, &gardencorev1beta1.Seed{}, nil)
	garden.Shoots = reader(f, gardencorev1beta1.Resource("shoots"), &gardencorev1beta1.ShootList{}, &gardencorev1beta1.Shoot{}, reduceShoot,
		gardenadmission.ShootsByBinding, gardenadmission.ShootsByDomain, gardenadmission.ShootsBySeed)
	garden.WorkloadIdentities = reader(f, securityv1alpha1.Resource("workloadidentities"), &securityv1alpha1.WorkloadIdentityList{}, &securityv1alpha1.WorkloadIdentity{}, nil)
}

// reduceShoot keeps the fields of Shoots that plugins read of other Shoots than that of the request.
func reduceShoot(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	reduced := &gardencorev1beta1.Shoot{ObjectMeta: cachetransform.Meta(shoot)}
	reduced.Spec.SeedName, reduced.Spec.DNS, reduced.Status.SeedName = shoot.Spec.SeedName, shoot.Spec.DNS, shoot.Status.SeedName
	reduced.Spec.SecretBindingName, reduced.Spec.CredentialsBindingName = shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName
	reduced.Spec.Provider.Type = shoot.Spec.Provider.Type
	return reduced
}

// reader adds an informer for the resource of a kind, and returns what reads it. Reduce removes fields that no plugin reads; nil removes only
// the managed fields.
func reader[T client.Object](
	f *facts, resource schema.GroupResource, list client.ObjectList, object T, reduce func(T) T, indexes ...gardenadmission.Index[T],
) *informed[T] {
	indexers := toolscache.Indexers{}
	for _, index := range indexes {
		indexers[index.Name] = func(object any) ([]string, error) {
			typed, ok := object.(T)
			if !ok {
				return nil, fmt.Errorf("index an object of type %T", object)
			}
			return index.Keys(typed), nil
		}
	}
	informer := rewatch.NewInformer(f.stored.listWatch(resource, f.only), object, 0, indexers)
	transform := cachetransform.Of(func(object T) T {
		object.SetManagedFields(nil)
		if reduce != nil {
			return reduce(object)
		}
		return object
	})
	if informer.SetTransform(transform) != nil {
		informer = nil // unreachable: the informer has not started
	}
	f.informers = append(f.informers, informer)
	return &informed[T]{name: fmt.Sprintf("%T", object), informer: informer, live: f.live, list: list, object: object}
}

// informed reads objects of one kind from an informer.
type informed[T client.Object] struct {
	name     string
	informer toolscache.SharedIndexInformer
	live     client.Reader
	list     client.ObjectList
	object   T
}

// Get implements admission.Reader.
func (i *informed[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if err := synced(ctx, i.informer, i.name); err != nil {
		return none, err
	}
	key := name
	if namespace != "" {
		key = gardenadmission.Key(namespace, name)
	}
	if found, exists, err := i.informer.GetStore().GetByKey(key); err == nil && exists {
		if typed, ok := found.(T); ok {
			return typed, nil
		}
	}
	object := i.object.DeepCopyObject().(T)
	err := i.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		return none, gardenadmission.Unavailable("read %s %s: %v", i.name, key, err)
	}
	return object, err
}

// By implements admission.Reader.
func (i *informed[T]) By(ctx context.Context, index gardenadmission.Index[T], key string) ([]T, error) {
	if err := synced(ctx, i.informer, i.name); err != nil {
		return nil, err
	}
	found, err := i.informer.GetIndexer().ByIndex(index.Name, key)
	if err != nil {
		return nil, fmt.Errorf("look up %s by %s: %w", i.name, index.Name, err)
	}
	objects := make([]T, 0, len(found))
	for _, object := range found {
		if typed, ok := object.(T); ok {
			objects = append(objects, typed)
		}
	}
	return objects, nil
}

// LiveBy implements admission.Reader.
func (i *informed[T]) LiveBy(ctx context.Context, index gardenadmission.Index[T], key string) ([]T, error) {
	list := i.list.DeepCopyObject().(client.ObjectList)
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	if err := i.live.List(ctx, list); err != nil {
		return nil, gardenadmission.Unavailable("list %s: %v", i.name, err)
	}
	var objects []T
	err := meta.EachListItem(list, func(object runtime.Object) error {
		typed, ok := object.(T)
		if !ok {
			return fmt.Errorf("the list of %s has a %T", i.name, object)
		}
		for _, found := range index.Keys(typed) {
			if found == key {
				objects = append(objects, typed)
				break
			}
		}
		return nil
	})
	return objects, err
}

// synced waits until an informer knows all objects. It returns 503 if that takes too long, so that nothing is admitted for
// want of facts.
func synced(ctx context.Context, informer toolscache.SharedIndexInformer, name string) error {
	if informer.HasSynced() {
		return nil
	}
	arrival, known := request.ReceivedTimestampFrom(ctx)
	if !known {
		arrival = time.Now()
	}
	ctx, cancel := context.WithDeadline(ctx, arrival.Add(factsTimeout))
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return gardenadmission.Unavailable("the API server does not know all objects of type %s yet; try again", name)
	}
	return nil
}
