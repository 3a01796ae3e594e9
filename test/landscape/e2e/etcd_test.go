package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/test/landscape"
)

// etcdTimeout is how long images may take to start on a busy machine.
const etcdTimeout = 5 * time.Minute

const etcdMain = "etcd-main"

// TestEtcd runs the etcd operator and members in real containers. Under write load, a cluster grows from one member to
// three, a Pod is killed, a volume is lost, and all members are replaced. No acknowledged write is lost.
func TestEtcd(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	must(t, druidv1alpha1.AddToScheme(c.Scheme()))
	for _, image := range []string{"resource-manager", etcdoperator.Image, etcdoperator.ImageMember} {
		_, err := base.Push(c.ctx, image)
		must(t, err)
	}
	config, err := base.Config()
	must(t, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(base.Root, "config", "crd", "druid")}, MaxTime: timeout})
	must(t, err)
	repository, tag, _ := strings.Cut(c.image("resource-manager"), ":")
	c.helm("resource-manager", "charts/resource-manager", c.namespace,
		fmt.Sprintf("image: {repository: %q, tag: %q}\nconfig: {controllers: {resourceClass: seed}}", repository, tag))
	objects, err := etcdoperator.Objects(etcdoperator.Values{
		Namespace: c.namespace, Image: c.image(etcdoperator.Image), MemberImage: c.image(etcdoperator.ImageMember), PriorityClass: "system-cluster-critical",
	})
	must(t, err)
	for _, object := range objects {
		switch object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			continue // the namespace is not that of a control plane
		}
		if deployment, ok := object.(*appsv1.Deployment); ok {
			// In a seed, a webhook of the resource-manager mounts the token.
			deployment.Spec.Template.Spec.AutomountServiceAccountToken = ptr.To(true)
		}
		must(t, c.Create(c.ctx, object))
		t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Delete(context.Background(), object))) })
	}
	trust := c.etcdCertificates()

	e := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: etcdMain}}
	e.Spec.Replicas, e.Spec.Labels = 1, map[string]string{"role": "main"}
	e.Spec.Selector.MatchLabels = e.Spec.Labels
	e.Spec.ETCD.ClientURLTLS = etcdTLS("etcd-client-tls")
	must(t, c.Create(c.ctx, e))
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(c.Delete(context.Background(), e)))
		c.within(etcdTimeout, "the Etcd is deleted", func() error {
			if err := c.Get(context.Background(), client.ObjectKeyFromObject(e), e); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%w: %+v", err, e.Status.LastOperation)
			}
			return nil
		})
	})
	c.etcdReady(1)
	l := c.writeTo(trust)
	c.changeEtcd(func(e *druidv1alpha1.Etcd) { e.Spec.Replicas, e.Spec.ETCD.PeerURLTLS = 3, etcdTLS("etcd-peer-tls") })
	c.etcdReady(3)
	l.goesOn()

	c.kubectl("delete", "pod", etcdMain+"-0", "--force", "--grace-period=0")
	l.goesOn()
	c.etcdReady(3)

	before := c.memberID(1)
	c.kubectl("delete", "pvc", etcdMain+"-"+etcdMain+"-1", "--wait=false")
	c.kubectl("delete", "pod", etcdMain+"-1", "--force", "--grace-period=0")
	l.goesOn()
	c.within(etcdTimeout, "the member has joined again", func() error {
		if c.memberID(1) == before {
			return fmt.Errorf("it still has the identifier %s", before)
		}
		return nil
	})
	c.etcdReady(3)

	c.changeEtcd(func(e *druidv1alpha1.Etcd) { e.Spec.Annotations = map[string]string{"rolled": "true"} })
	c.etcdReady(3)
	l.verify()
}

// etcdCertificates creates the Secrets of an Etcd, and returns the CA and the certificate of a client.
func (c *cluster) etcdCertificates() *tls.Config {
	c.t.Helper()
	authority, err := landscape.NewAuthority("etcd")
	must(c.t, err)
	pair, err := authority.Issue("etcd-member", nil, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, etcdMain+"-local",
		fmt.Sprintf("*.%s-peer.%s.svc", etcdMain, c.namespace), etcdMain+"-client")
	must(c.t, err)
	for _, name := range []string{"etcd-client-tls", "etcd-peer-tls"} {
		c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{
			"ca.crt": authority.PEM(), corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key,
		}})
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	must(c.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM())
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool, ServerName: etcdMain + "-client", MinVersion: tls.VersionTLS12}
}

func etcdTLS(secret string) *druidv1alpha1.TLSConfig {
	config := &druidv1alpha1.TLSConfig{}
	config.TLSCASecretRef.Name, config.ServerTLSSecretRef.Name, config.ClientTLSSecretRef.Name = secret, secret, secret
	return config
}

// changeEtcd changes the Etcd and requests its reconciliation.
func (c *cluster) changeEtcd(change func(*druidv1alpha1.Etcd)) {
	c.t.Helper()
	c.eventually("the Etcd is changed", func() error {
		e := &druidv1alpha1.Etcd{}
		if err := c.Get(c.ctx, c.key(etcdMain), e); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, etcd.AnnotationOperation, etcd.OperationReconcile)
		change(e)
		return c.Update(c.ctx, e)
	})
}

// etcdReady waits until a number of members is ready and up to date.
func (c *cluster) etcdReady(members int) {
	c.t.Helper()
	began := time.Now()
	c.within(etcdTimeout, fmt.Sprintf("%d members are ready", members), func() error {
		e := &druidv1alpha1.Etcd{}
		if err := c.Get(c.ctx, c.key(etcdMain), e); err != nil {
			return err
		}
		status := e.Status
		if status.ObservedGeneration == nil || *status.ObservedGeneration != e.Generation || e.Annotations[etcd.AnnotationOperation] != "" ||
			status.Ready == nil || !*status.Ready || len(status.Members) != members {
			return fmt.Errorf("the status is %+v", status)
		}
		for _, condition := range status.Conditions {
			if condition.Status != druidv1alpha1.ConditionTrue && condition.Type != druidv1alpha1.ConditionTypeClusterIDMismatch {
				return fmt.Errorf("%s: %s", condition.Type, condition.Message)
			}
		}
		return nil
	})
	c.t.Logf("%d members are ready after %s", members, time.Since(began).Round(100*time.Millisecond))
}

// memberID returns the identifier of a member, or an empty string if it has none.
func (c *cluster) memberID(ordinal int32) string {
	c.t.Helper()
	e := &druidv1alpha1.Etcd{}
	must(c.t, c.Get(c.ctx, c.key(etcdMain), e))
	for _, member := range e.Status.Members {
		if member.Name == etcd.MemberName(etcdMain, ordinal) && member.ID != nil {
			return *member.ID
		}
	}
	return ""
}

// etcdLoad writes keys through the client Service, and records the acknowledged ones.
type etcdLoad struct {
	c      *cluster
	client *clientv3.Client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
	failed       int
	last         error
}

func (c *cluster) writeTo(trust *tls.Config) *etcdLoad {
	c.t.Helper()
	s := &corev1.Service{}
	must(c.t, c.Get(c.ctx, c.key(etcd.ClientServiceName(etcdMain)), s))
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(s.Spec.ClusterIP, "2379")}, TLS: trust, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialOptions:       []grpc.DialOption{grpc.WithAuthority(etcd.ClientServiceName(etcdMain))}, // the certificate has no addresses of Services
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second,                  // closes a connection to a deleted Pod
	})
	must(c.t, err)
	ctx, cancel := context.WithCancel(c.ctx)
	l := &etcdLoad{c: c, client: client, cancel: cancel}
	l.done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			key := fmt.Sprintf("/load/%06d", i)
			attempt, stop := context.WithTimeout(ctx, 2*time.Second)
			_, err := client.Put(attempt, key, key)
			stop()
			l.mu.Lock()
			if err == nil {
				l.acknowledged = append(l.acknowledged, key)
			} else {
				l.failed, l.last = l.failed+1, err
			}
			l.mu.Unlock()
		}
	})
	c.t.Cleanup(func() {
		l.end()
		_ = client.Close()
	})
	return l
}

func (l *etcdLoad) end() {
	l.cancel()
	l.done.Wait()
}

func (l *etcdLoad) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// failure returns the last error.
func (l *etcdLoad) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *etcdLoad) goesOn() {
	l.c.t.Helper()
	before := l.count()
	l.c.eventually("writes are acknowledged", func() error {
		if now := l.count(); now < before+20 {
			return fmt.Errorf("%d writes, previously %d: %w", now, before, l.failure())
		}
		return nil
	})
}

// verify stops the load, and reads all acknowledged keys.
func (l *etcdLoad) verify() {
	l.c.t.Helper()
	l.end()
	answer, err := l.client.Get(l.c.ctx, "/load/", clientv3.WithPrefix())
	must(l.c.t, err)
	found := map[string]bool{}
	for _, kv := range answer.Kvs {
		found[string(kv.Key)] = true
	}
	lost := 0
	for _, key := range l.acknowledged {
		if !found[key] {
			lost++
		}
	}
	if lost > 0 {
		l.c.t.Errorf("%d of %d acknowledged writes are lost", lost, len(l.acknowledged))
	}
	l.c.t.Logf("%d writes acknowledged, %d lost, %d failed", len(l.acknowledged), lost, l.failed)
}
