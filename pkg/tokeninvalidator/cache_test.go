package tokeninvalidator

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

var full = metav1.ObjectMeta{
	Namespace: "n", Name: "a", UID: "u", ResourceVersion: "1", Generation: 2, Finalizers: []string{"f"},
	Labels:        map[string]string{"a": "b", purposeLabel: "p", considerLabel: "c", skipLabel: "s"},
	Annotations:   map[string]string{"kubernetes.io/service-account.name": "sa", "kubernetes.io/service-account.uid": "x", "a": "b"},
	ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
}

func reduced(labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "1", Labels: labels, Annotations: annotations}
}

func TestCacheTransform_KeepsUsedFieldsOnly(t *testing.T) {
	meta := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	for _, test := range []struct {
		transform toolscache.TransformFunc
		in, want  any
	}{
		{cachetransform.Of(keepTokenSecret), &metav1.PartialObjectMetadata{TypeMeta: meta, ObjectMeta: full},
			&metav1.PartialObjectMetadata{TypeMeta: meta, ObjectMeta: reduced(map[string]string{purposeLabel: "p", considerLabel: "c"},
				map[string]string{"kubernetes.io/service-account.name": "sa"})}},
		{cachetransform.Of(keepSettings), &corev1.ServiceAccount{ObjectMeta: full, AutomountServiceAccountToken: ptr.To(false), Secrets: []corev1.ObjectReference{{Name: "s"}}},
			&corev1.ServiceAccount{ObjectMeta: reduced(map[string]string{skipLabel: "s"}, nil), AutomountServiceAccountToken: ptr.To(false)}},
		{cachetransform.Of(keepSettings), &corev1.ServiceAccount{ObjectMeta: reduced(nil, nil)}, &corev1.ServiceAccount{ObjectMeta: reduced(nil, nil)}},
		{cachetransform.Of(keepUsedSecrets), &corev1.Pod{ObjectMeta: full, Status: corev1.PodStatus{PodIP: "1.2.3.4"}}, &corev1.Pod{ObjectMeta: reduced(nil, nil)}},
	} {
		got, err := test.transform(test.in)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("for %+v the cache keeps %+v: %v", test.in, got, err)
		}
	}
}

func TestAccountOf(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"":   {"a": "b", "kubernetes.io/service-account.name": ""},
		"sa": {"kubernetes.io/service-account.name": "sa"},
	} {
		got := accountOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
		if len(got) > 1 || slices.Contains(got, "") || (want != "") != slices.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := usedBy(&corev1.Secret{}); got != nil {
		t.Errorf("a Secret uses %q", got)
	}
}

// TestEvents checks which events enqueue a Secret.
func TestEvents(t *testing.T) {
	secret := func(uid, label, account string) *metav1.PartialObjectMetadata {
		secret := newSecret()
		secret.UID, secret.Labels, secret.Annotations = "u", map[string]string{purposeLabel: label}, map[string]string{corev1.ServiceAccountNameKey: account}
		if uid != "" {
			secret.UID = "other"
		}
		return secret
	}
	labels := labelsChanged()
	for _, test := range []struct {
		before, after *metav1.PartialObjectMetadata
		want          bool
	}{
		{secret("", "a", "b"), secret("", "a", "b"), false}, {secret("", "a", "b"), secret("", "x", "b"), true},
		{secret("", "a", "b"), secret("", "a", "x"), true}, {secret("", "a", "b"), secret("x", "a", "b"), true},
	} {
		if got := labels.Update(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%v to %v: %t", test.before, test.after, got)
		}
	}
	if !labels.Create(event.TypedCreateEvent[*metav1.PartialObjectMetadata]{}) || !labels.Delete(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]{}) {
		t.Error("created or deleted Secrets are ignored")
	}

	changes := settingsChanged()
	account := func(automount *bool, labels map[string]string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Labels: labels}, AutomountServiceAccountToken: automount}
	}
	skipped := map[string]string{skipLabel: ""}
	for _, test := range []struct {
		before, after *corev1.ServiceAccount
		want          bool
	}{
		{account(nil, nil), account(ptr.To(true), nil), false}, {account(nil, nil), account(ptr.To(false), nil), true},
		{account(ptr.To(false), nil), account(ptr.To(false), skipped), true}, {account(ptr.To(false), skipped), account(nil, nil), false},
	} {
		if got := changes.Update(event.TypedUpdateEvent[*corev1.ServiceAccount]{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%v to %v: %t", test.before, test.after, got)
		}
	}

	pods := podGone()
	pod := func(uid types.UID) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	if pods.Create(event.TypedCreateEvent[*corev1.Pod]{Object: pod("a")}) || !pods.Delete(event.TypedDeleteEvent[*corev1.Pod]{Object: pod("a")}) ||
		pods.Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: pod("a"), ObjectNew: pod("a")}) ||
		!pods.Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: pod("a"), ObjectNew: pod("b")}) {
		t.Error("deleted Pods are ignored, or other Pods are not")
	}
}
