package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/provider/local/example"
)

// shootFile is the example with the Shoot, in the directory examples.
const shootFile = "fleet/shoot-workerless.yaml"

// shootKey identifies the Shoot of the example.
var shootKey = client.ObjectKey{Namespace: "garden-dev", Name: "registry"}

// createProject creates the Project of the Shoot, and waits until the controller-manager has created its namespace.
func (f *Fleet) createProject(ctx context.Context) error {
	if err := f.apply(ctx, f, "project.yaml", nil); err != nil {
		return err
	}
	return wait(ctx, func() error {
		project := &corev1beta1.Project{}
		if err := f.Get(ctx, client.ObjectKey{Name: "dev"}, project); err != nil {
			return err
		}
		if project.Status.Phase != corev1beta1.ProjectReady {
			return fmt.Errorf("the Project %s is %q", project.Name, project.Status.Phase)
		}
		return nil
	})
}

// createShoot applies the Shoot, and waits until its control plane is running.
func (f *Fleet) createShoot(ctx context.Context) error {
	if err := f.CreateShoot(ctx, shootKey, f.shootVersion); err != nil {
		return err
	}
	return wait(ctx, func() error { return f.ShootIsReady(ctx, shootKey) })
}

// CreateShoot applies the Shoot of the example under another key and with another version of Kubernetes, which the CloudProfile has to
// offer. The scheduler assigns it to the Seed.
func (f *Fleet) CreateShoot(ctx context.Context, key client.ObjectKey, version string) error {
	objects, err := f.examples(shootFile)
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		if err := unstructured.SetNestedField(object.Object, version, "spec", "kubernetes", "version"); err != nil {
			return fmt.Errorf("set the version of the Shoot: %w", err)
		}
		unstructured.RemoveNestedField(object.Object, "spec", "seedName") // the scheduler chooses it
		extensions := []any{map[string]any{"type": example.TypeSeed}, map[string]any{"type": example.TypeShoot}}
		if err := unstructured.SetNestedSlice(object.Object, extensions, "spec", "extensions"); err != nil {
			return fmt.Errorf("set the extensions of the Shoot: %w", err)
		}
	}
	return applyObjects(ctx, f, objects)
}

// ShootIsReady returns an error unless the last operation of a Shoot has succeeded for its current generation.
func (f *Fleet) ShootIsReady(ctx context.Context, key client.ObjectKey) error {
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, key, shoot); err != nil {
		return err
	}
	last := shoot.Status.LastOperation
	if last == nil || shoot.Status.ObservedGeneration != shoot.Generation {
		return fmt.Errorf("the Shoot %s has not been reconciled yet", key)
	}
	if last.State != corev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("the Shoot %s: %s %s, %d %%: %s", key, last.Type, last.State, last.Progress, last.Description)
	}
	return nil
}

// AwaitShoot waits until the last operation of a Shoot has succeeded for its current generation.
func (f *Fleet) AwaitShoot(ctx context.Context, key client.ObjectKey) error {
	ctx, cancel := context.WithTimeout(ctx, shootTimeout)
	defer cancel()
	return wait(ctx, func() error { return f.ShootIsReady(ctx, key) })
}

// CreateShoots creates copies of the Shoot of Up, all at once, and returns how long each took to become ready.
func (f *Fleet) CreateShoots(ctx context.Context, keys ...client.ObjectKey) ([]time.Duration, error) {
	for _, key := range keys {
		if err := f.CreateShoot(ctx, key, f.shootVersion); err != nil {
			return nil, err
		}
	}
	times := make([]time.Duration, 0, len(keys))
	for _, key := range keys {
		if err := f.AwaitShoot(ctx, key); err != nil {
			return times, err
		}
		shoot := &corev1beta1.Shoot{}
		if err := f.Get(ctx, key, shoot); err != nil {
			return times, fmt.Errorf("read Shoot %s: %w", key, err)
		}
		times = append(times, shoot.Status.LastOperation.LastUpdateTime.Sub(shoot.CreationTimestamp.Time))
	}
	return times, nil
}

// WriteShootKubeconfig writes a kubeconfig for an administrator of the Shoot of the example.
func (f *Fleet) WriteShootKubeconfig(ctx context.Context) error {
	return f.WriteKubeconfig(ctx, shootKey, f.ShootKubeconfig())
}

// WriteKubeconfig writes a kubeconfig for an administrator of a Shoot, which is valid for an hour, to a file. It connects to the address of the
// gateway and asks there for the name of the API server, because the names of the landscape are not resolved outside of it.
func (f *Fleet) WriteKubeconfig(ctx context.Context, key client.ObjectKey, file string) error {
	config, err := f.Kubeconfig(ctx, key, time.Hour)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file)
}

// Kubeconfig returns what [Fleet.WriteKubeconfig] writes, with another validity. The garden's API server limits it to a day.
func (f *Fleet) Kubeconfig(ctx context.Context, key client.ObjectKey, validity time.Duration) (*clientcmdapi.Config, error) {
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, key, shoot); err != nil {
		return nil, fmt.Errorf("read Shoot %s: %w", key, err)
	}
	request := &authenticationv1alpha1.AdminKubeconfigRequest{}
	request.Spec.ExpirationSeconds = ptr.To(int64(validity / time.Second))
	if err := f.SubResource("adminkubeconfig").Create(ctx, shoot, request); err != nil {
		return nil, fmt.Errorf("request a kubeconfig for Shoot %s: %w", key, err)
	}
	config, err := clientcmd.Load(request.Status.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig for Shoot %s: %w", key, err)
	}
	host, address, err := f.Address(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.TLSServerName = "https://"+address, host
	}
	return config, nil
}

// Address returns the internal name of the API server of a Shoot, and the address that its DNS record has: that of the gateway which all
// Shoots of the Seed share.
func (f *Fleet) Address(ctx context.Context, key client.ObjectKey) (host, address string, err error) {
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, key, shoot); err != nil {
		return "", "", fmt.Errorf("read Shoot %s: %w", key, err)
	}
	record := &extensionsv1alpha1.DNSRecord{}
	if err := f.base.Get(ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: key.Name + "-internal"}, record); err != nil {
		return "", "", fmt.Errorf("read the DNS record of Shoot %s: %w", key, err)
	}
	if len(record.Spec.Values) != 1 {
		return "", "", fmt.Errorf("the DNS record of Shoot %s has the values %v, not one address", key, record.Spec.Values)
	}
	return record.Spec.Name, record.Spec.Values[0], nil
}

// ShootKubeconfig returns the path of the kubeconfig for an administrator of the Shoot, which Up writes.
func (f *Fleet) ShootKubeconfig() string {
	return filepath.Join(f.landscape.Directory, "shoot.kubeconfig")
}
