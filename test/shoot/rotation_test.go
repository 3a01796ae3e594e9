package shoot

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestRotation rotates all credentials of a Shoot that is in use. Old credentials are accepted until the rotation is
// completed, and rejected afterwards. A client that switches from the old to the new ones sees no failed request. gardenlet
// is restarted in the middle of each phase. With -shoot.kills, it is killed at every second write.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	run := func() (stop func()) { _, _, stop = w.gardenlet(); return stop }
	if *everyKill {
		m := &mortal{world: w, attempts: map[string]int{}, decide: atEachWrite["after each second write"]}
		run = m.run
		defer func() { t.Logf("gardenlet was killed %d times", m.killed()) }()
	}
	stop := run()
	restart := func() {
		stop()
		stop = run()
	}
	w.declare()
	r := w.newRollout()
	r.until("the Shoot is created", func() string { return w.succeeded() })
	r.settle()

	old := credentialsOf(w)
	robot(old.admin)
	old.token = tokenOf(w, old.admin)
	kit.Must(t, old.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}))
	for number := range 600 { // more than one page of a list
		kit.Must(t, old.admin.Create(t.Context(), secretOf("rest-"+strconv.Itoa(number), "at rest")))
	}
	traffic := startTraffic(w, old)
	before := w.material()

	r.together = func(first, second int) { r.compare(traffic.credentials(), first, second) }
	began := time.Now()
	w.operate(constants.OperationRotateCredentialsStart)
	r.until("the first step is rolled out", func() string { return w.ledgerHas("distribute-etcd-encryption-key") })
	restart()
	r.until("the rotation is prepared", func() string {
		return w.phases("Prepared", "Prepared", "Completed")
	})
	t.Logf("prepared, and the encryption key rotated, after %s; rolled out: %v", time.Since(began).Round(time.Second), r.rolled)
	w.works(old, "old credentials, prepared")
	latest := credentialsOf(w)
	latest.token = tokenOf(w, latest.admin)
	w.works(latest, "new credentials, prepared")
	if bytes.Equal(latest.config.CAData, old.config.CAData) || bytes.Equal(w.material()["ca-client"], before["ca-client"]) {
		t.Error("the new credentials are the old ones")
	}
	w.checkEncryption("secrets", w.encryptionKey())
	traffic.connect(w, latest)

	w.operate(constants.OperationRotateCredentialsComplete)
	r.until("the completion has started", func() string {
		if phase := w.get().Status.Credentials.Rotation.CertificateAuthorities.Phase; phase == corev1beta1.RotationPrepared {
			return "it is still prepared"
		}
		return ""
	})
	restart()
	r.until("the rotation is completed", func() string { return w.phases("Completed", "Completed", "Completed") })
	t.Logf("completed after %s; rolled out: %v", time.Since(began).Round(time.Second), r.rolled)
	r.settle()
	w.works(latest, "new credentials, completed")
	w.refused(old)
	w.checkMaterial(before, w.material())
	w.checkTimes()
	w.controllersWork(latest.admin)
	r.changeEncryption(latest.admin)
	traffic.stop()
	t.Logf("requests during the rotation and the changes of the encryption: %d, failed: %d", traffic.sent, len(traffic.failed))
	for _, failed := range traffic.failed {
		t.Errorf("a request failed: %v", failed)
	}
	w.deletion()
	stop()
}

// credentials are the credentials of a user and of a program.
type credentials struct {
	config *rest.Config
	admin  client.Client
	token  string
}

// credentialsOf returns the current credentials.
func credentialsOf(w *world) credentials {
	w.Helper()
	config := w.adminConfig()
	return credentials{config: config, admin: w.clientOf(config)}
}

// at returns the connection of the user, or of the program, to a replica.
func (c credentials) at(host string, program bool) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Host = host
	if program {
		config.BearerToken, config.CertData, config.KeyData = c.token, nil, nil
	}
	return config
}

// robot gives a program the permissions of an administrator.
func robot(admin client.Client) {
	ctx := context.Background()
	_ = admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}})
	_ = admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "robot"}},
	})
}

func tokenOf(w *world, admin client.Client) string {
	w.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	kit.Must(w, admin.SubResource("token").Create(w.Context(), account, request))
	return request.Status.Token
}

func secretOf(name, text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"text": []byte(text)}}
}

// requests is the number of requests of writeAndRead.
const requests = 6

// writeAndRead creates a Secret and a ConfigMap with one client and reads them with another.
func writeAndRead(ctx context.Context, writer, reader client.Client, name string) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"text": name}}
	foundSecret, foundConfigMap := &corev1.Secret{}, &corev1.ConfigMap{}
	for _, each := range []struct {
		wanted, found client.Object
		text          func() string
	}{
		{secretOf(name, name), foundSecret, func() string { return string(foundSecret.Data["text"]) }},
		{configMap, foundConfigMap, func() string { return foundConfigMap.Data["text"] }},
	} {
		if err := writer.Create(ctx, each.wanted); err != nil {
			return fmt.Errorf("write %T: %w", each.wanted, err)
		}
		if err := reader.Get(ctx, client.ObjectKeyFromObject(each.wanted), each.found); err != nil {
			return fmt.Errorf("read %T: %w", each.wanted, err)
		}
		if each.text() != name {
			return fmt.Errorf("wrote %T %q and read %q", each.wanted, name, each.text())
		}
		if err := writer.Delete(ctx, each.found); err != nil {
			return fmt.Errorf("delete %T: %w", each.wanted, err)
		}
	}
	return nil
}

// works checks that the user and the program can use their credentials, over new connections.
func (w *world) works(c credentials, what string) {
	w.Helper()
	user, program := w.clientOf(c.at(w.address(), false)), w.clientOf(c.at(w.address(), true))
	if err := writeAndRead(w.Context(), user, program, "works-"+strconv.FormatInt(time.Now().UnixNano(), 36)); err != nil {
		w.Errorf("%s: %v", what, err)
	}
}

// refused checks that old credentials are not accepted.
func (w *world) refused(old credentials) {
	w.Helper()
	latest := w.adminConfig()
	get := func(config *rest.Config) error {
		c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: w.seed.RESTMapper()})
		kit.Must(w, err)
		return c.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &corev1.ConfigMap{})
	}
	for _, program := range []bool{false, true} {
		trusting := old.at(w.address(), program)
		trusting.CAData = latest.CAData
		if err := get(trusting); !apierrors.IsUnauthorized(err) {
			w.Errorf("the old credentials are accepted (of a program: %t): %v", program, err)
		}
	}
	if err := get(old.at(w.address(), false)); err == nil || !strings.Contains(err.Error(), "x509") {
		w.Errorf("the server has a certificate of the old authority: %v", err)
	}
}

// compare checks that two replicas of the API server read each other's writes, and accept each other's tokens.
func (r *rollout) compare(c credentials, first, second int) {
	r.Helper()
	hosts := []string{"https://127.0.0.1:" + strconv.Itoa(first), "https://127.0.0.1:" + strconv.Itoa(second)}
	for range 2 {
		writer, reader := r.clientOf(c.at(hosts[0], false)), r.clientOf(c.at(hosts[1], true))
		issued := c
		issued.token = tokenOf(r.world, writer)
		issuedReader := r.clientOf(issued.at(hosts[1], true))
		name := "replica-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		if err := writeAndRead(r.Context(), writer, reader, name); err != nil {
			r.Errorf("from replica %s to %s: %v", hosts[0], hosts[1], err)
		}
		if err := issuedReader.List(r.Context(), &corev1.SecretList{}, client.InNamespace("default")); err != nil {
			r.Errorf("a token of replica %s at %s: %v", hosts[0], hosts[1], err)
		}
		slices.Reverse(hosts)
	}
}

// traffic writes and reads continuously, as a user and as a program.
type traffic struct {
	mu      sync.Mutex
	current credentials
	user    client.Client
	program client.Client
	sent    int
	failed  []error
	stop    func()
}

func startTraffic(w *world, c credentials) *traffic {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t := &traffic{stop: sync.OnceFunc(func() { cancel(); <-ended })}
	t.connect(w, c)
	w.Cleanup(t.stop)
	go func() {
		defer close(ended)
		for number := 0; ctx.Err() == nil; number++ {
			t.mu.Lock()
			user, program := t.user, t.program
			t.mu.Unlock()
			if number%2 == 1 {
				user, program = program, user
			}
			err := writeAndRead(ctx, user, program, "traffic-"+strconv.Itoa(number))
			if ctx.Err() != nil {
				return
			}
			t.sent += requests
			if err != nil {
				t.failed = append(t.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // leaves CPU time for the tested programs
			}
		}
	}()
	return t
}

func (t *traffic) connect(w *world, c credentials) {
	user, program := w.clientOf(c.at(w.address(), false)), w.clientOf(c.at(w.address(), true))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current, t.user, t.program = c, user, program
}

func (t *traffic) credentials() credentials {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}
