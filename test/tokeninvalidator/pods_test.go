package tokeninvalidator

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// pod creates a Pod that gets no projected token.
func (f *fixture) pod(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{ObjectMeta: f.meta(name), Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "a", Image: "a"}},
	}}
	change(&pod.Spec)
	kit.Eventually(f, "the Pod is created, once the default ServiceAccount exists", func() string { return kit.TextOf(f.client.Create(f.ctx, pod)) })
	return pod
}

func mounting(secret string, keys ...string) func(*corev1.PodSpec) {
	var items []corev1.KeyToPath
	for _, key := range keys {
		items = append(items, corev1.KeyToPath{Key: key, Path: key})
	}
	return func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}}
	}
}

func projecting(secret string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
		}}}}}
	}
}

func variable(secret, key string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
		}}}}
	}
}

func allVariables(secret string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.InitContainers = []corev1.Container{{Name: "i", Image: "i", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
		}}}
	}
}

// TestPodsThatUseTheSecret checks that the token stays valid while a Pod of the namespace uses it, which is reported once. It becomes
// invalid when the last such Pod is deleted or has ended.
func TestPodsThatUseTheSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	uses := map[string]func(string) func(*corev1.PodSpec){
		"volume":    func(secret string) func(*corev1.PodSpec) { return mounting(secret) },
		"item":      func(secret string) func(*corev1.PodSpec) { return mounting(secret, "ca.crt", "token") },
		"projected": projecting,
		"variable":  func(secret string) func(*corev1.PodSpec) { return variable(secret, "token") },
		"variables": allVariables,
	}
	pods, tokens := map[string][]*corev1.Pod{}, map[string]string{}
	for name, use := range uses {
		f.account(name, ptr.To(false), nil)
		f.token(name, name)
		tokens[name] = f.generated(name)
		for i := range 2 {
			pods[name] = append(pods[name], f.pod(fmt.Sprintf("%s-%d", name, i), use(name)))
		}
	}
	p := f.start()
	for name, token := range tokens {
		secret := f.secret(name)
		f.eventuallyTold(secret, "Warning", "TokenInUse", name+"-0, "+name+"-1.", "projected token")
		f.eventuallyAccepted(token)
	}
	wantMetric(p, fmt.Sprintf(`static_tokens_blocked{reason="TokenInUse"} %d`, len(uses)))

	for name := range uses {
		f.delete(pods[name][0])
	}
	f.account("later", ptr.To(false), nil) // its Secret is created after the events of the Pods
	f.token("later", "later")
	f.eventuallyInvalid("later")
	for name, token := range tokens {
		if secret := f.secret(name); string(secret.Data["token"]) != token || secret.Labels[consider] != "" {
			t.Errorf("%s: the token was changed although a Pod uses it", name)
		}
		last := pods[name][1]
		if name == "volume" || name == "variable" { // the Pod ends
			last.Status.Phase = map[string]corev1.PodPhase{"volume": corev1.PodSucceeded, "variable": corev1.PodFailed}[name]
			kit.Must(t, f.client.Status().Update(f.ctx, last))
		} else {
			f.delete(last)
		}
	}
	for name, token := range tokens {
		f.eventuallyInvalid(name)
		f.eventuallyRefused(token)
		f.checkTold(f.events(f.secret(name), "TokenInUse"), "Warning")
	}
	wantMetric(p, `static_tokens_blocked{reason="TokenInUse"} 0`)
	wantMetric(p, fmt.Sprintf("static_tokens_invalidated_total %d", len(uses)+1))
	if log := p.Written.String(); strings.Contains(log, `"level":"error"`) {
		t.Error("waiting for Pods is logged as an error")
	}
}

func (f *fixture) delete(obj client.Object) {
	f.Helper()
	kit.Must(f, f.client.Delete(f.ctx, obj, client.GracePeriodSeconds(0)))
}

// TestPodsThatDoNotUseTheSecret checks that other Pods have no effect: Pods of another namespace, with other Secrets, with only other
// keys, and Pods that have ended.
func TestPodsThatDoNotUseTheSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := kit.NewNamespace(t, f.client, "tokens", nil)
	f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	f.generated("a-1")
	f.pod("other-secret", mounting("a"))
	f.pod("other-key", mounting("a-1", "ca.crt"))
	f.pod("other-variable", variable("a-1", "ca.crt"))
	ended := f.pod("ended", mounting("a-1"))
	ended.Status.Phase = corev1.PodFailed
	kit.Must(t, f.client.Status().Update(f.ctx, ended))
	there := *f
	there.namespace = elsewhere
	there.pod("elsewhere", mounting("a-1"))
	f.start(elsewhere)
	f.eventuallyInvalid("a-1")
	if events := f.events(f.secret("a-1"), "TokenInUse"); len(events) != 0 {
		t.Errorf("unexpected Events: %v", events)
	}
}

// TestPodsAndRequests checks that the ServiceAccount may be changed in both directions while Pods use a token. A Pod that is created
// too late gets the invalid token.
func TestPodsAndRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account("a", ptr.To(false), nil)
	f.token("a-1", "a")
	token := f.generated("a-1")
	pod := f.pod("first", mounting("a-1"))
	p := f.start()
	wantMetric(p, `static_tokens_blocked{reason="TokenInUse"} 1`)
	f.change(account, func() { account.AutomountServiceAccountToken = nil })
	wantMetric(p, `static_tokens_blocked{reason="TokenInUse"} 0`)
	f.change(account, func() { account.AutomountServiceAccountToken = ptr.To(false) })
	wantMetric(p, `static_tokens_blocked{reason="TokenInUse"} 1`)
	if f.secret("a-1").Labels[consider] != "" {
		t.Error("the Secret is labelled although a Pod uses it")
	}
	f.eventuallyAccepted(token)
	f.delete(pod)
	f.eventuallyInvalid("a-1")
	f.pod("late", mounting("a-1"))
	f.patch(f.secret("a-1"), `{"data":{"token":null}}`)
	f.eventuallyInvalid("a-1")
	f.eventuallyRefused(token)
	if f.secret("a-1").Labels[consider] != "true" {
		t.Error("a Pod that was created too late made the token valid")
	}

	kit.Must(t, f.client.Delete(f.ctx, account)) // Kubernetes deletes the Secret with it
	kit.EventuallyTrue(t, "the Secret no longer exists", func() bool {
		return apierrors.IsNotFound(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "a-1"}, &corev1.Secret{}))
	})
}
