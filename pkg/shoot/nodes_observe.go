package shoot

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// choiceConfigs of the bundle of node agents is a digest of the OperatingSystemConfigs that it was computed from. They are large, so
// they are read only if it differs.
const choiceConfigs = "configs"

// observeCredentials reads which credentials for the infrastructure the Shoot has. A binding that does not exist is reported as a
// missing reference.
func (r *reconciler) observeCredentials(ctx context.Context, in *Inputs) error {
	spec := in.Shoot.Spec
	if !in.hasWorkers() {
		return nil
	}
	read := func(name string, into client.Object) (bool, error) {
		err := r.objects.Get(ctx, in.user(), client.ObjectKey{Namespace: in.Shoot.Namespace, Name: name}, into)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read the credentials of the Shoot: %w", err)
		}
		return err == nil, nil
	}
	switch {
	case ptr.Deref(spec.CredentialsBindingName, "") != "":
		binding := &securityv1alpha1.CredentialsBinding{}
		found, err := read(*spec.CredentialsBindingName, binding)
		if err != nil {
			return err
		}
		in.Credentials = []reference{{"CredentialsBinding", in.Shoot.Namespace, *spec.CredentialsBindingName}}
		if found {
			of := binding.CredentialsRef
			in.Credentials = []reference{{of.Kind, of.Namespace, of.Name}}
		}
	case ptr.Deref(spec.SecretBindingName, "") != "":
		binding := &corev1beta1.SecretBinding{}
		found, err := read(*spec.SecretBindingName, binding)
		if err != nil {
			return err
		}
		in.Credentials = []reference{{"SecretBinding", in.Shoot.Namespace, *spec.SecretBindingName}}
		if found {
			in.Credentials = []reference{{kindSecret, binding.SecretRef.Namespace, binding.SecretRef.Name}}
		}
	}
	return nil
}

// extensionReport is what an extension reported with its last operation, and the stamp of that operation.
type extensionReport struct {
	stamp          string
	infrastructure *extensionsv1alpha1.InfrastructureStatus
	pools          []extensionsv1alpha1.WorkerPool
	deployments    []extensionsv1alpha1.MachineDeployment
	userData       string
}

// observeMachines reads what extensions have reported about nodes. It reads an object only after an operation.
func (r *reconciler) observeMachines(ctx context.Context, in *Inputs) error {
	in.Machines = Machines{
		Finished: map[string]bool{}, Pools: map[string]extensionsv1alpha1.WorkerPool{},
		UserData: map[string]string{}, Configs: map[string]extensionsv1alpha1.OperatingSystemConfig{},
	}
	if !in.hasWorkers() {
		return nil
	}
	var stamps []string
	for _, key := range in.Emitted {
		if key.Namespace != in.Namespace || !isNodeOperation(key.Name) {
			continue
		}
		mr := &resourcesv1alpha1.ManagedResource{}
		err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ManagedResource %s: %w", key, err)
		}
		if isConfig := strings.HasPrefix(key.Name, prefixOperatingSystem); err == nil && isConfig && mr.DeletionTimestamp == nil {
			stamps = append(stamps, key.Name+" "+stampOf(mr))
		}
		if err != nil || !answered(mr) {
			continue
		}
		asked, _, err := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}.Choice(in.Owner, key, choiceAskedFor)
		if err != nil {
			return err
		}
		in.Machines.Finished[key.Name] = asked == in.generation()
		if err := r.observeReported(ctx, in, key.Name, stampOf(mr)); err != nil {
			return err
		}
	}
	return r.observeConfigs(ctx, in, stamps)
}

// answered reports whether an extension has finished the operation that a ManagedResource requests.
func answered(mr *resourcesv1alpha1.ManagedResource) bool {
	is := func(kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) bool {
		return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind).Status == status
	}
	return mr.DeletionTimestamp == nil && mr.Status.ObservedGeneration == mr.Generation && is(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue) &&
		is(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue) && is(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse)
}

// stampOf identifies the last operation that a ManagedResource requested: it changes with each request and its end.
func stampOf(mr *resourcesv1alpha1.ManagedResource) string {
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	return fmt.Sprintf("%s %d %d %d", mr.UID, mr.Generation, healthy.LastTransitionTime.Unix(), progressing.LastTransitionTime.Unix())
}

// observeReported sets what an extension has reported. It reads the object only if an operation has ended since the last time.
func (r *reconciler) observeReported(ctx context.Context, in *Inputs, name, stamp string) error {
	r.mu.Lock()
	known := r.reports[in.Owner.UID][name]
	r.mu.Unlock()
	if known.stamp != stamp {
		var err error
		if known, err = r.readReported(ctx, in, name); err != nil {
			return err
		}
		known.stamp = stamp
		r.mu.Lock()
		if r.reports[in.Owner.UID] == nil {
			r.reports[in.Owner.UID] = map[string]extensionReport{}
		}
		r.reports[in.Owner.UID][name] = known
		r.mu.Unlock()
	}
	if known.infrastructure != nil {
		in.Machines.Infrastructure = known.infrastructure
	}
	if len(known.deployments) > 0 {
		in.Machines.Deployments = known.deployments
	}
	for _, pool := range known.pools {
		in.Machines.Pools[pool.Name] = pool
	}
	if key, is := strings.CutPrefix(name, prefixOperatingSystem); is && known.userData != "" {
		in.Machines.UserData[key] = known.userData
	}
	return nil
}

func (r *reconciler) readReported(ctx context.Context, in *Inputs, name string) (extensionReport, error) {
	var found extensionReport
	key := client.ObjectKey{Namespace: in.Namespace, Name: in.Shoot.Name}
	read := func(key client.ObjectKey, into client.Object) error {
		if err := r.uncached.Get(ctx, key, into); err != nil {
			return fmt.Errorf("read what the extension reported in %s: %w", key, err)
		}
		return nil
	}
	switch {
	case name == bundleInfrastructure:
		object := &extensionsv1alpha1.Infrastructure{}
		err := read(key, object)
		found.infrastructure = &object.Status
		return found, err
	case name == bundleWorker:
		object := &extensionsv1alpha1.Worker{}
		err := read(key, object)
		found.pools, found.deployments = object.Spec.Pools, object.Status.MachineDeployments
		return found, err
	case strings.HasPrefix(name, prefixOperatingSystem):
		object := &extensionsv1alpha1.OperatingSystemConfig{}
		key.Name, _ = configNames(strings.TrimPrefix(name, prefixOperatingSystem))
		err := read(key, object)
		if config := object.Status.CloudConfig; config != nil {
			found.userData = config.SecretRef.Name
		}
		return found, err
	}
	return found, nil
}

// observeConfigs reads the OperatingSystemConfigs of nodes if the bundle of node agents was not computed from them. It reads them whether
// or not their extension has finished, because a node that still has an old key must not lose its configuration.
func (r *reconciler) observeConfigs(ctx context.Context, in *Inputs, stamps []string) error {
	slices.Sort(stamps)
	in.Machines.Stamps = strings.Join(stamps, " ")
	in.ConfigsStamp = object.Digest([]byte(in.Version + " " + in.Machines.Stamps))
	key, mr := in.key(bundleNodeAgent), &resourcesv1alpha1.ManagedResource{}
	err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	if err == nil {
		last, _, err := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}.Choice(in.Owner, key, choiceConfigs)
		if err != nil {
			return err
		}
		if in.ConfigsKnown = last == in.ConfigsStamp; in.ConfigsKnown {
			return nil
		}
	}
	for _, stamp := range stamps {
		bundle, _, _ := strings.Cut(stamp, " ")
		of := strings.TrimPrefix(bundle, prefixOperatingSystem)
		config := extensionsv1alpha1.OperatingSystemConfig{}
		_, name := configNames(of)
		err := r.uncached.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: name}, &config)
		if apierrors.IsNotFound(err) {
			continue // it is not created yet
		}
		if err != nil {
			return fmt.Errorf("read OperatingSystemConfig %s/%s: %w", in.Namespace, name, err)
		}
		if err := r.resolveFiles(ctx, in.Namespace, config.Spec.Files, config.Status.ExtensionFiles); err != nil {
			return fmt.Errorf("read the files of OperatingSystemConfig %s/%s: %w", in.Namespace, name, err)
		}
		in.Machines.Configs[of] = config
	}
	return nil
}

// resolveFiles replaces references to Secrets in the seed, which nodes cannot read, by their contents.
func (r *reconciler) resolveFiles(ctx context.Context, namespace string, all ...[]extensionsv1alpha1.File) error {
	for _, files := range all {
		for i := range files {
			ref := files[i].Content.SecretRef
			if ref == nil {
				continue
			}
			secret := &corev1.Secret{}
			if err := r.uncached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); err != nil {
				return fmt.Errorf("%s: %w", files[i].Path, err)
			}
			data, found := secret.Data[ref.DataKey]
			if !found {
				return fmt.Errorf("%s: the Secret %s has no key %q", files[i].Path, ref.Name, ref.DataKey)
			}
			files[i].Content.SecretRef = nil
			files[i].Content.Inline = &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString(data)}
		}
	}
	return nil
}
