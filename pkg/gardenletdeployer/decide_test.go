package gardenletdeployer

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"crypto/rand"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedrestriction"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// TestNext is the life of the credentials of a gardenlet: the first ones, their renewal, each interruption of it, and what is not permitted.
func TestNext(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later, before := now.Add(time.Hour), now.Add(-time.Hour)
	valid, expired := Stored{Fingerprint: "a", Expires: later}, Stored{Fingerprint: "a", Expires: before}
	renews := func(replaces string) map[string]string {
		annotations := map[string]string{operation: "renew-kubeconfig"}
		if replaces != "" {
			annotations[AnnotationReplaces] = replaces
		}
		return annotations
	}
	for name, test := range map[string]struct {
		state State
		want  Step
	}{
		"a new gardenlet":                        {State{Allowed: true}, Step{Offer: true}},
		"it has not requested a certificate yet": {State{Allowed: true, Offered: later}, Step{}},
		"it did not in time":                     {State{Allowed: true, Offered: before}, Step{Offer: true}},
		"it has a certificate":                   {State{Stored: valid, Allowed: true}, Step{}},
		"it has a token":                         {State{Stored: Stored{Fingerprint: "a"}}, Step{}},
		"its certificate has expired":            {State{Stored: expired, Allowed: true}, Step{Offer: true, Discard: true}},
		"interrupted before the deletion":        {State{Stored: expired, Allowed: true, Offered: later}, Step{Discard: true}},
		"a renewal":                              {State{Annotations: renews(""), Stored: valid}, Step{Mark: "a", Offer: true, Discard: true}},
		"a renewal, interrupted after the mark":  {State{Annotations: renews("a"), Stored: valid}, Step{Offer: true, Discard: true}},
		"a renewal, interrupted after the offer": {State{Annotations: renews("a"), Stored: valid, Offered: later}, Step{Discard: true}},
		"a renewal, waiting":                     {State{Annotations: renews("a"), Offered: later}, Step{}},
		"a renewal, the offer has expired":       {State{Annotations: renews("a"), Offered: before}, Step{Offer: true}},
		"a renewal, done":                        {State{Annotations: renews("a"), Stored: Stored{Fingerprint: "b", Expires: later}}, Step{Finish: true}},
		"a renewal without a kubeconfig":         {State{Annotations: renews("")}, Step{Mark: noKubeconfig, Offer: true}},
		"a renewal without one, done":            {State{Annotations: renews(noKubeconfig), Stored: valid}, Step{Finish: true}},
		"a renewal of credentials of others":     {State{Bootstrap: v1alpha1.BootstrapNone, Annotations: renews("")}, Step{Finish: true}},
		"credentials of others":                  {State{Bootstrap: v1alpha1.BootstrapNone}, Step{}},
	} {
		test.state.Now = now
		if got := Next(test.state); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
	for name, state := range map[string]State{"gone": {}, "expired": {Stored: expired}} {
		state.Now = now
		if step := Next(state); !strings.Contains(step.Missing, "renew-kubeconfig") || step.Offer || step.Discard {
			t.Errorf("%s, and not permitted: %+v", name, step)
		}
	}
}

// TestToken checks that tokens have the form that the garden's admission accepts, and are used again while they are valid.
func TestToken(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	garden := fake.NewClientBuilder().Build()
	issuer := Issuer{Garden: garden, Cluster: clientcmdapi.Cluster{Server: "https://garden.example.org"}, FieldManager: "test", Random: rand.Reader, Clock: clock}
	issue := func() string {
		t.Helper()
		content, expires, err := issuer.Issue(t.Context(), ManagedSeed, "garden", "blue", v1alpha1.BootstrapToken)
		if err != nil || !expires.After(clock.Now()) {
			t.Fatalf("%v, until %s", err, expires)
		}
		return string(content)
	}
	first := issue()
	secrets := &corev1.SecretList{}
	if err := garden.List(t.Context(), secrets, client.InNamespace("kube-system")); err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%v, %d Secrets", err, len(secrets.Items))
	}
	secret := &secrets.Items[0]
	kind, namespace, name, found := seedrestriction.TokenFor(string(secret.Data["description"]))
	if !found || kind != "ManagedSeed" || namespace != "garden" || name != "blue" || secret.Type != corev1.SecretTypeBootstrapToken {
		t.Errorf("%s is for %s %s/%s", secret.Data["description"], kind, namespace, name)
	}
	if issue() != first {
		t.Error("a valid token was replaced")
	}
	clock.SetTime(clock.Now().Add(23*time.Hour + 30*time.Minute))
	if issue() == first {
		t.Error("a token that expires was used again")
	}
	if err := issuer.Revoke(t.Context(), "garden", "blue", v1alpha1.BootstrapToken); err != nil {
		t.Error(err)
	}
	if err := garden.List(t.Context(), secrets, client.InNamespace("kube-system")); err != nil || len(secrets.Items) != 0 {
		t.Errorf("after the end: %v, %d Secrets", err, len(secrets.Items))
	}
	if err := issuer.Revoke(t.Context(), "garden", "blue", v1alpha1.BootstrapServiceAccount); err != nil {
		t.Error(err)
	}
}

func TestCheckOwner(t *testing.T) {
	for content, refused := range map[string]bool{
		"": false, "seedConfig: {metadata: {name: blue}}": false, "seedConfig: {metadata: {name: red}}": true, "[": false, "seedConfig: {}": false,
	} {
		if err := CheckOwner(&corev1.ConfigMap{Data: map[string]string{configKey: content}}, "blue"); (err != nil) != refused {
			t.Errorf("%q: %v", content, err)
		}
	}
}
