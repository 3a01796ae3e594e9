package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	day       = 24 * time.Hour
	namespace = "shoot--dev--one"
)

var start = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

func configs() []Config {
	return []Config{
		{Name: "ca", Kind: KindCA, KeepOld: true, Persist: true},
		{Name: "ca-client", Kind: KindCA, KeepOld: true, Persist: true, AlwaysChecksum: true},
		{Name: "kube-apiserver", Kind: KindServer, CommonName: "kube-apiserver", DNSNames: []string{"kube-apiserver"}, SignedBy: "ca", Validity: 90 * day},
		{Name: "kubectl", Kind: KindClient, CommonName: "kubectl", SignedBy: "ca-client", Validity: 90 * day},
		{Name: "service-account-key", Kind: KindRSAKey, Bits: 1024, KeepOld: true, Persist: true},
		{Name: "etcd-encryption-key", Kind: KindEncryptionKey, KeepOld: true, Persist: true},
		{Name: "observability", Kind: KindBasicAuth, Username: "admin", Persist: true},
		{Name: "static-token", Kind: KindStaticToken, Users: []User{{Name: "health-check"}}, Persist: true},
	}
}

// place is a namespace with a Manager.
type place struct {
	*testing.T
	client  client.WithWatch
	clock   *testingclock.FakePassiveClock
	manager *Manager
	// rotations are the declared rotations.
	rotations map[string]Rotation
}

func newPlace(t *testing.T) *place {
	t.Helper()
	scheme := runtime.NewScheme() // kept small, because the fake client builds a mapper of the whole scheme for each write
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, client: fake.NewClientBuilder().WithScheme(scheme).Build(), clock: testingclock.NewFakePassiveClock(start), rotations: map[string]Rotation{}}
	p.manager = &Manager{Reader: p.client, Uncached: p.client, Writer: p.client, Namespace: namespace, Identity: "gardenlet", Clock: p.clock}
	return p
}

func (p *place) ensure(configs []Config) Result {
	p.Helper()
	result, err := p.manager.Ensure(p.Context(), Wanted{Configs: configs, Rotations: p.rotations})
	if err != nil {
		p.Fatal(err)
	}
	return result
}

// refused returns the error of an Ensure that must be refused.
func (p *place) refused(wanted Wanted) string {
	p.Helper()
	wanted.Rotations = p.rotations
	_, err := p.manager.Ensure(p.Context(), wanted)
	if err == nil {
		p.Fatal("the configs were not refused")
	}
	return err.Error()
}

func (p *place) cleanUp(configs []Config, unsettled []string, referred func(string) bool) {
	p.Helper()
	if err := p.manager.CleanUp(p.Context(), Wanted{Configs: configs, Rotations: p.rotations}, unsettled, referred); err != nil {
		p.Fatal(err)
	}
}

// lose deletes Secrets, like a user does.
func (p *place) lose(secrets ...Secret) {
	p.Helper()
	for _, secret := range secrets {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret.Name}}
		if err := p.client.Delete(p.Context(), object); err != nil {
			p.Fatal(err)
		}
	}
}

func nothing(string) bool { return false }

func (p *place) rotate(phase corev1beta1.CredentialsRotationPhase, names ...string) {
	for _, name := range names {
		rotation := p.rotations[name]
		if phase == corev1beta1.RotationPreparing {
			rotation.Initiated = p.clock.Now()
		}
		rotation.Phase = phase
		p.rotations[name] = rotation
	}
}

func TestEnsure(t *testing.T) {
	p := newPlace(t)
	result := p.ensure(configs())
	if len(result.Items) != len(configs()) || len(result.Unused) > 0 {
		t.Fatalf("%d items, unused %v", len(result.Items), result.Unused)
	}
	ca := result.Items["ca"]
	if ca.Current.Name != "ca" || !strings.HasPrefix(ca.Bundle.Name, "ca-bundle-") || ca.Old != nil {
		t.Errorf("the authority is %s with the bundle %s", ca.Current.Name, ca.Bundle.Name)
	}
	if name := result.Items["ca-client"].Current.Name; !strings.HasPrefix(name, "ca-client-") {
		t.Errorf("the authority for clients is called %s", name)
	}
	var object corev1.Secret
	name := result.Items["kube-apiserver"].Current.Name
	if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &object); err != nil {
		t.Fatal(err)
	}
	if object.Type != corev1.SecretTypeTLS || !*object.Immutable {
		t.Errorf("type %s, immutable %v", object.Type, object.Immutable)
	}
	for label, value := range map[string]string{
		"name": "kube-apiserver", "managed-by": "secrets-manager", "manager-identity": "gardenlet",
		"checksum-of-signing-ca": ca.Current.Data.checksum()[:63], "issued-at-time": fmt.Sprint(start.Add(-time.Minute).Unix()),
		"valid-until-time": fmt.Sprint(start.Add(90 * day).Unix()), "persist": "",
	} {
		if object.Labels[label] != value {
			t.Errorf("label %s is %q, want %q", label, object.Labels[label], value)
		}
	}
	again := p.ensure(configs())
	for name, item := range result.Items {
		if again.Items[name].Current.Name != item.Current.Name {
			t.Errorf("%s was generated again", name)
		}
	}
	if issued := start.Add(-time.Minute); !result.Next.Equal(issued.Add((90*day + time.Minute) / 100 * 80)) {
		t.Errorf("next %v", result.Next)
	}
}

func TestAtRestNothingIsSent(t *testing.T) {
	p := newPlace(t)
	p.ensure(configs())
	p.manager.Uncached, p.manager.Writer = nil, nil
	p.ensure(configs())
}

func TestRotationKeepsOldUntilCompleting(t *testing.T) {
	p := newPlace(t)
	before := p.ensure(configs())
	rotated := []string{"ca", "ca-client", "service-account-key", "etcd-encryption-key"}
	p.clock.SetTime(start.Add(day))
	p.rotate(corev1beta1.RotationPreparing, rotated...)
	preparing := p.ensure(configs())
	for _, name := range rotated {
		item := preparing.Items[name]
		if item.Old == nil || item.Old.Name != before.Items[name].Current.Name || item.Current.Name == item.Old.Name {
			t.Errorf("preparing: %s is %s, and the old one is %+v", name, item.Current.Name, item.Old)
		}
	}
	if bundle := preparing.Items["ca"].Bundle; bytes.Count(bundle.Data[KeyBundleCert], []byte("BEGIN CERTIFICATE")) != 2 {
		t.Error("the bundle does not have both authorities")
	}
	if got := preparing.Items["kube-apiserver"].Current.Name; got != before.Items["kube-apiserver"].Current.Name {
		t.Error("the server changed before all clients trust the new authority")
	}
	if got := preparing.Items["kubectl"].Current.Name; got == before.Items["kubectl"].Current.Name {
		t.Error("the client did not change to the new authority")
	}
	p.rotate(corev1beta1.RotationPrepared, rotated...)
	if prepared := p.ensure(configs()); prepared.Items["ca"].Old == nil || prepared.Items["ca"].Bundle.Name != preparing.Items["ca"].Bundle.Name {
		t.Error("prepared: the old authority is dropped before the user has completed the rotation")
	}
	p.rotate(corev1beta1.RotationCompleting, rotated...)
	completing := p.ensure(configs())
	for _, name := range rotated {
		if item := completing.Items[name]; item.Old != nil || item.Current.Name != preparing.Items[name].Current.Name {
			t.Errorf("completing: %s is %s, and the old one is %+v", name, item.Current.Name, item.Old)
		}
	}
	if got := completing.Items["kube-apiserver"].Current.Name; got == before.Items["kube-apiserver"].Current.Name {
		t.Error("completing: the server's certificate is signed by the old authority")
	}
	unused := len(completing.Unused)
	if unused == 0 || len(Deletable(completing, []string{"a is not rolled out"}, func(string) bool { return false })) > 0 {
		t.Errorf("of %d unused Secrets some are deleted before the rollout is complete", unused)
	}
	mounted := completing.Unused[0].Name
	deletable := Deletable(completing, nil, func(name string) bool { return name == mounted })
	if len(deletable) != unused-1 {
		t.Errorf("%d of %d are deletable, want one less because one is mounted", len(deletable), unused)
	}
	p.cleanUp(configs(), []string{"a is not rolled out"}, nothing)
	if again := p.ensure(configs()); len(again.Unused) != unused {
		t.Errorf("%d of %d unused Secrets remain, although the rollout is not complete", len(again.Unused), unused)
	}
	p.cleanUp(configs(), nil, func(name string) bool { return name == mounted })
	p.rotate(corev1beta1.RotationCompleted, rotated...)
	if completed := p.ensure(configs()); len(completed.Unused) != 1 || completed.Items["ca"].Current.Name != completing.Items["ca"].Current.Name {
		t.Errorf("completed: %d unused", len(completed.Unused))
	}
}

func TestSeedAuthorityIsRenewedAndTheOldOneDropped(t *testing.T) {
	p := newPlace(t)
	seed := []Config{{Name: "ca-seed", Kind: KindCA, Validity: 60 * day, KeepOld: true, RenewAuthority: true, IgnoreOldAfter: day}}
	first := p.ensure(seed).Items["ca-seed"]
	p.clock.SetTime(start.Add(49 * day))
	second := p.ensure(seed)
	if item := second.Items["ca-seed"]; item.Old == nil || item.Old.Name != first.Current.Name {
		t.Fatalf("after 80 %% of the validity: %+v", item)
	}
	if !second.Next.Equal(start.Add(50*day - time.Minute)) {
		t.Errorf("next %v", second.Next)
	}
	p.clock.SetTime(start.Add(51 * day))
	if item := p.ensure(seed).Items["ca-seed"]; item.Old != nil {
		t.Errorf("a day later: the old one is still %s", item.Old.Name)
	}
}

// TestLastRenewal checks that the time changes when a certificate is renewed or credentials are rotated, and not when a new
// version of the program changes the configs.
func TestLastRenewal(t *testing.T) {
	p := newPlace(t)
	is := func(result Result, want time.Time, what string) {
		t.Helper()
		if !result.LastRenewal.Equal(want) {
			t.Errorf("%s: the last renewal was at %v, want %v", what, result.LastRenewal, want)
		}
	}
	is(p.ensure(configs()), time.Time{}, "new")

	rotated := start.Add(day)
	p.clock.SetTime(rotated)
	for _, name := range []string{"ca", "ca-client", "ca-other"} {
		p.rotations[name] = Rotation{Initiated: rotated, Phase: corev1beta1.RotationPreparing}
	}
	is(p.ensure(configs()), rotated, "rotated")
	p.clock.SetTime(rotated.Add(day))
	others := append(configs(), Config{Name: "ca-other", Kind: KindCA}, Config{Name: "other", Kind: KindServer, CommonName: "other", SignedBy: "ca-other", Validity: 90 * day})
	others[2].DNSNames = append(others[2].DNSNames, "another")
	is(p.ensure(others), rotated, "configs are added and changed")
	is(p.ensure(configs()[:1]), rotated, "configs are omitted")

	renewed := start.Add(80 * day)
	p.clock.SetTime(renewed)
	is(p.ensure(others), renewed, "renewed")
	p.clock.SetTime(renewed.Add(day))
	is(p.ensure(others), renewed, "a day later")
	is(p.ensure(configs()[:1]), renewed, "the renewed configs are omitted")
}

func TestWhatIsLostIsNotReplaced(t *testing.T) {
	p := newPlace(t)
	asked := []Config{{Name: "etcd-encryption-key", Kind: KindEncryptionKey, KeepOld: true, Persist: true}}
	name := p.ensure(asked).Items["etcd-encryption-key"].Current.Name
	asked[0].RestoreOnly = true
	p.clock.SetTime(start.Add(day))
	p.rotate(corev1beta1.RotationPreparing, "etcd-encryption-key")
	if result := p.ensure(asked); result.Items["etcd-encryption-key"].Old == nil {
		t.Error("a rotation does not keep the old key")
	}
	for _, secret := range p.ensure(asked).Items {
		p.lose(secret.Current, *secret.Old)
	}
	if text := p.refused(Wanted{Configs: asked}); !strings.Contains(text, "is lost") {
		t.Errorf("%s is missing: error %s", name, text)
	}
}

func TestWhatCannotBeResolvedYetKeepsAll(t *testing.T) {
	p := newPlace(t)
	p.ensure(configs())
	state, err := p.manager.state(t.Context(), p.client, Wanted{
		Rotations: map[string]Rotation{"ca": {Initiated: start.Add(day), Phase: corev1beta1.RotationPreparing}},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := Resolve(configs(), state)
	if err != nil || len(result.Unused) > 0 || len(result.Missing) != 1 {
		t.Errorf("missing %d, unused %v, error %v", len(result.Missing), result.Unused, err)
	}
}

func TestAdoption(t *testing.T) {
	p := newPlace(t)
	adopt := func(name string) {
		t.Helper()
		if err := p.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{constants.LabelSecretsManagerUseDataForName: "observability"}},
			Data:       map[string][]byte{KeyUsername: []byte("admin"), KeyPassword: []byte("of " + name)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	asked := []Config{{Name: "observability", Kind: KindBasicAuth, Username: "admin"}}
	adopt("mine")
	if got := p.ensure(asked).Items["observability"].Current.Data[KeyPassword]; string(got) != "of mine" {
		t.Error("the data were not adopted")
	}
	adopt("yours")
	asked[0].Username = "root"
	if text := p.refused(Wanted{Configs: asked}); !strings.Contains(text, "mine and yours") {
		t.Errorf("error %s", text)
	}
}

func TestLabelsFollowTheConfig(t *testing.T) {
	p := newPlace(t)
	asked := []Config{{Name: "observability", Kind: KindBasicAuth, Username: "admin"}}
	name := p.ensure(asked).Items["observability"].Current.Name
	for _, persist := range []bool{true, false} {
		asked[0].Persist = persist
		p.ensure(asked)
		var object corev1.Secret
		if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &object); err != nil {
			t.Fatal(err)
		}
		if (object.Labels[constants.LabelSecretsManagerPersist] == "true") != persist {
			t.Errorf("persist %t: labels %v", persist, object.Labels)
		}
	}
}

func TestAdvance(t *testing.T) {
	for _, test := range []struct {
		phase, next        corev1beta1.CredentialsRotationPhase
		unsettled, workers []string
	}{
		{phase: corev1beta1.RotationPreparing, next: corev1beta1.RotationPrepared},
		{phase: corev1beta1.RotationPreparing, next: corev1beta1.RotationPreparing, unsettled: []string{"x"}},
		{phase: corev1beta1.RotationPreparing, next: corev1beta1.RotationPreparing, workers: []string{"pool"}},
		{phase: corev1beta1.RotationPreparingWithoutWorkersRollout, next: corev1beta1.RotationWaitingForWorkersRollout, workers: []string{"pool"}},
		{phase: corev1beta1.RotationWaitingForWorkersRollout, next: corev1beta1.RotationWaitingForWorkersRollout, workers: []string{"pool"}},
		{phase: corev1beta1.RotationWaitingForWorkersRollout, next: corev1beta1.RotationPrepared},
		{phase: corev1beta1.RotationPrepared, next: corev1beta1.RotationPrepared},
		{phase: corev1beta1.RotationCompleting, next: corev1beta1.RotationCompleted},
		{phase: corev1beta1.RotationCompleting, next: corev1beta1.RotationCompleting, unsettled: []string{"x"}},
		{phase: "", next: ""},
	} {
		next, why := Advance(test.phase, test.unsettled, test.workers)
		if next != test.next || (why == "") != (len(test.unsettled)+len(test.workers) == 0 || next != test.phase) {
			t.Errorf("%+v: %s, %q", test, next, why)
		}
	}
}

func TestBytesAreNotLogged(t *testing.T) {
	p := newPlace(t)
	result := p.ensure(configs())
	var log bytes.Buffer
	logger := zap.New(zap.WriteTo(&log))
	var private []string
	for _, name := range slices.Sorted(maps.Keys(result.Items)) {
		item := result.Items[name]
		for _, value := range item.Current.Data {
			private = append(private, string(value))
		}
		logger.Info("item", "item", item, "secret", item.Current, "data", item.Current.Data)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
			fmt.Fprintf(&log, verb, item)
		}
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(text)
	}
	request := Request{Adopted: result.Items["observability"].Current.Data}
	fmt.Fprintf(&log, "%+v %#v", request, request)
	for _, value := range private {
		if value != "admin" && value != "base64" && strings.Contains(log.String(), value[:min(len(value), 20)]) {
			t.Fatal("the log contains secret data")
		}
	}
	if !strings.Contains(log.String(), redacted) {
		t.Errorf("nothing was logged: %s", log.String())
	}
}
