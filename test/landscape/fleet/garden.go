package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/landscape"
)

// installEtcd installs the etcd of the garden's API server with a volume, so that the garden keeps its data when the Pod is
// replaced.
func (f *Fleet) installEtcd(ctx context.Context) error {
	reference, err := f.landscape.Image("etcd")
	if err != nil {
		return err
	}
	if err := f.apply(ctx, f.base, "etcd.yaml", map[string]string{"Namespace": system, "Image": reference}); err != nil {
		return err
	}
	return f.rolledOut(ctx, system, "garden-etcd")
}

// installAPIServer installs the API server of the garden, and gardenlet's permissions in it.
func (f *Fleet) installAPIServer(ctx context.Context) error {
	bundle, err := f.servingCertificate(ctx)
	if err != nil {
		return err
	}
	repository, tag, err := f.image("apiserver")
	if err != nil {
		return err
	}
	if err := f.install(ctx, "apiserver", "apiserver", system, fmt.Sprintf(`
replicas: 1
image: {repository: %q, tag: %q}
clusterIdentity: landscape
etcd: {servers: ["http://garden-etcd:2379"]}
insecure: true # the garden of a test has an etcd without TLS
tls: {secretName: garden-tls, caBundle: %q}`, repository, tag, bundle)); err != nil {
		return err
	}
	if err := f.rolledOut(ctx, system, "gardener-apiserver"); err != nil {
		return err
	}
	return wait(ctx, func() error { return f.List(ctx, &corev1beta1.SeedList{}) })
}

// servingCertificate creates the certificate of the API server unless it exists, and returns the CA bundle that verifies
// it.
func (f *Fleet) servingCertificate(ctx context.Context) (bundle []byte, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "garden-tls"}}
	if err := f.base.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		return secret.Data["ca.crt"], err
	}
	authority, err := landscape.NewAuthority("garden")
	if err != nil {
		return nil, err
	}
	server, err := authority.Issue("gardener-apiserver", nil, nil, "gardener-apiserver."+system+".svc")
	if err != nil {
		return nil, err
	}
	secret.Data = map[string][]byte{
		"ca.crt": authority.PEM(), corev1.TLSCertKey: server.Certificate, corev1.TLSPrivateKeyKey: server.Key,
	}
	return authority.PEM(), f.base.Create(ctx, secret)
}

// installControllerManager installs the controllers of the garden.
func (f *Fleet) installControllerManager(ctx context.Context) error {
	return f.installInGarden(ctx, "controller-manager", "priorityClass: {create: true}")
}

// installScheduler installs the scheduler. The chart of the controller-manager has created their PriorityClass.
func (f *Fleet) installScheduler(ctx context.Context) error {
	return f.installInGarden(ctx, "scheduler", "priorityClass: {create: false}")
}

// installInGarden installs a program with controllers for the garden with the chart of its name. values are YAML.
func (f *Fleet) installInGarden(ctx context.Context, name, values string) error {
	repository, tag, err := f.image(name)
	if err != nil {
		return err
	}
	program := fmt.Sprintf("{replicaCount: 1, image: {repository: %q, tag: %q}, %s}", repository, tag, values)
	if err := f.install(ctx, name, name, system, program); err != nil {
		return err
	}
	return f.rolledOut(ctx, system, "gardener-"+name)
}
