package cleanup

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func kind(t *testing.T, annotations map[string]string, name string) Kind {
	t.Helper()
	for _, stage := range Stages(annotations) {
		for _, kind := range stage.Kinds {
			if kind.Kind == name {
				return kind
			}
		}
	}
	t.Fatalf("no stage has the kind %s", name)
	return Kind{}
}

// TestStages checks the order of the stages, and the times that annotations shorten.
func TestStages(t *testing.T) {
	names := func(annotations map[string]string) (stages, last []string) {
		for _, stage := range Stages(annotations) {
			stages, last = append(stages, stage.Name), nil
			for _, kind := range stage.Kinds {
				last = append(last, kind.Kind)
			}
		}
		return stages, last
	}
	if stages, _ := names(nil); !slices.Equal(stages, []string{StageWebhooks, StageExtendedAPIs, StageResources}) {
		t.Errorf("the stages are %v", stages)
	}
	skipped, kinds := names(map[string]string{constants.AnnotationShootSkipCleanup: "true"})
	if !slices.Equal(skipped, []string{StageWebhooks, StageResources}) || !slices.Equal(kinds, []string{"Service", "PersistentVolumeClaim", "VolumeSnapshot", "VolumeSnapshotContent"}) {
		t.Errorf("the stages that are not skipped are %v with %v", skipped, kinds)
	}
	const resources, extended = constants.AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds, constants.AnnotationShootCleanupExtendedAPIsFinalizeGracePeriodSeconds
	for _, test := range []struct {
		kind, key, value string
		want             time.Duration
	}{
		{"Service", "", "", 5 * time.Minute}, {"Service", resources, "60", time.Minute}, {"Service", resources, "3600", 5 * time.Minute}, {"Service", resources, "0", 0},
		{"Service", resources, "-1", 5 * time.Minute}, {"Service", resources, "soon", 5 * time.Minute}, {"Service", extended, "60", 5 * time.Minute},
		{"VolumeSnapshot", "", "", time.Hour}, {"VolumeSnapshot", resources, "60", time.Minute},
		{"CustomResourceDefinition", "", "", time.Hour}, {"CustomResourceDefinition", extended, "60", time.Minute}, {"APIService", extended, "60", time.Minute},
		{"MutatingWebhookConfiguration", "", "", 5 * time.Minute},
		{"ValidatingWebhookConfiguration", constants.AnnotationShootCleanupWebhooksFinalizeGracePeriodSeconds, "1", time.Second},
	} {
		if got := kind(t, map[string]string{test.key: test.value}, test.kind).FinalizeAfter; got != test.want {
			t.Errorf("%s with %s=%s: %s, want %s", test.kind, test.key, test.value, got, test.want)
		}
	}
	if pod := kind(t, map[string]string{resources: "60"}, "Pod"); !pod.Graceful || pod.GracePeriod != time.Minute {
		t.Errorf("%+v", pod)
	}
}

// TestSelectors checks which objects are kept.
func TestSelectors(t *testing.T) {
	system, managed := map[string]string{"gardener.cloud/role": "system-component"}, map[string]string{"resources.gardener.cloud/managed-by": "gardener"}
	kept := map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
	for _, test := range []struct {
		kind    string
		labels  map[string]string
		deleted bool
	}{
		{"Service", nil, true}, {"Service", map[string]string{"provider": "kubernetes"}, false}, {"Service", system, false}, {"Service", managed, false}, {"Service", kept, false},
		{"Pod", map[string]string{"provider": "kubernetes"}, true}, {"CustomResourceDefinition", kept, false}, {"CustomResourceDefinition", system, false},
		{"APIService", nil, true}, {"APIService", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}, false}, {"APIService", kept, true}, {"APIService", system, false},
		{"ValidatingWebhookConfiguration", kept, false}, {"ValidatingWebhookConfiguration", map[string]string{"shoot.gardener.cloud/no-cleanup": "false"}, true},
	} {
		if got := kind(t, nil, test.kind).Selector.Matches(labels.Set(test.labels)); got != test.deleted {
			t.Errorf("%s with the labels %v is deleted: %t", test.kind, test.labels, got)
		}
	}
}

func object(name string, deleting time.Duration, finalizers ...string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	if deleting >= 0 {
		o.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(-deleting)))
	}
	return o
}

// TestDecide checks the action for an object depending on how long it has been deleting.
func TestDecide(t *testing.T) {
	graceful := func(o metav1.PartialObjectMetadata, grace time.Duration) metav1.PartialObjectMetadata {
		o.DeletionTimestamp.Time = o.DeletionTimestamp.Add(grace)
		o.DeletionGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
		return o
	}
	for name, test := range map[string]struct {
		object metav1.PartialObjectMetadata
		want   action
	}{
		"lives":                    {object("a", -1), actionDelete},
		"guarded, lives":           {object("a", -1, "x"), actionDelete},
		"guarded":                  {object("a", 4*time.Minute, "x"), actionWait},
		"guarded for long":         {object("a", 5*time.Minute, "x"), actionFinalize},
		"goes":                     {object("a", 5*time.Minute), actionWait},
		"ends":                     {graceful(object("a", 4*time.Minute), 5*time.Minute), actionWait},
		"does not end":             {graceful(object("a", 5*time.Minute), 5*time.Minute), actionFinalize},
		"does not end soon enough": {graceful(object("a", 5*time.Minute), time.Hour), actionFinalize},
	} {
		if got := decide(kind(t, nil, "Pod"), &test.object, now); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestBlocks checks that the clean-up does not wait for objects that are repeatedly created.
func TestBlocks(t *testing.T) {
	service := kind(t, nil, "Service")
	for created, want := range map[time.Duration]bool{-time.Hour: true, 0: true, 5 * time.Minute: true, 5*time.Minute + time.Second: false} {
		o := object("a", -1)
		o.CreationTimestamp = metav1.NewTime(now.Add(created))
		if got := blocks(service, &o, now); got != want {
			t.Errorf("created %s after the start: %t", created, got)
		}
	}
}

// TestLeftovers checks that the description of the remaining objects is the same each time, and limited in length.
func TestLeftovers(t *testing.T) {
	left := &leftovers{}
	left.add(kind(t, nil, "Service"), nil)
	if left.String() != "" {
		t.Errorf("got %q although nothing remains", left)
	}
	left.add(kind(t, nil, "Service"), []metav1.PartialObjectMetadata{object("d", -1), object("b", time.Minute, "example.org/a", "example.org/b"), object("a", -1), object("c", -1), object("e", -1)})
	const want = "objects left in the cluster: Service default/a, default/b (finalizers example.org/a, example.org/b), default/c and 2 more; " +
		"finalizers are removed after 2026-11-23T12:04:00Z"
	if left.String() != want {
		t.Errorf("got  %s\nwant %s", left, want)
	}
	for range 100 {
		left.add(kind(t, nil, "Service"), []metav1.PartialObjectMetadata{object(strings.Repeat("ä", 100), -1)})
	}
	if text := left.String(); len(text) > 2*bytesShown || !strings.Contains(text, "…") {
		t.Errorf("%d bytes", len(text))
	}
}
