package shootquota

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var created = time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC) // the clocks of Europe change on 2026-03-29

// shootWith returns a Shoot with an annotation, unless that is "-".
func shootWith(annotation string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
	if annotation != "-" {
		shoot.Annotations = map[string]string{constants.AnnotationShootExpirationTimestamp: annotation, "other": "x"}
	}
	return shoot
}

func TestDecide(t *testing.T) {
	const unchanged, regular, twice = "unchanged", "2026-04-03T12:00:00Z", "2026-04-17T12:00:00Z"
	for name, test := range map[string]struct {
		annotation string
		lifetime   *int32
		now        string
		// written is the annotation afterwards, expires the end.
		written, expires string
		want             bool
	}{
		"no limit":                   {"-", nil, "2027-01-01T00:00:00Z", unchanged, "", false},
		"limit removed":              {regular, nil, "2027-01-01T00:00:00Z", "", "", false},
		"new":                        {"-", ptr.To[int32](14), "2026-03-20T12:00:01Z", regular, regular, false},
		"known":                      {regular, ptr.To[int32](14), "2026-03-29T12:00:01Z", unchanged, regular, false},
		"the second before":          {regular, ptr.To[int32](14), "2026-04-03T11:59:59Z", unchanged, regular, false},
		"at the end":                 {regular, ptr.To[int32](14), regular, unchanged, regular, true},
		"after the end":              {regular, ptr.To[int32](14), "2026-05-03T12:00:00Z", unchanged, regular, true},
		"old, without an annotation": {"-", ptr.To[int32](14), "2026-05-03T12:00:00Z", regular, regular, true},
		"shortened":                  {"2026-03-21T12:00:00Z", ptr.To[int32](14), "2026-03-21T12:00:00Z", unchanged, "2026-03-21T12:00:00Z", true},
		"extended":                   {"2026-04-10T12:00:00Z", ptr.To[int32](14), "2026-04-05T12:00:00Z", unchanged, "2026-04-10T12:00:00Z", false},
		"extended to twice":          {twice, ptr.To[int32](14), "2026-04-16T12:00:00Z", unchanged, twice, false},
		"extended too far":           {"2030-01-01T00:00:00Z", ptr.To[int32](14), "2026-04-16T12:00:00Z", twice, twice, false},
		"extended too far, ended":    {"2030-01-01T00:00:00Z", ptr.To[int32](14), twice, twice, twice, true},
		"another time zone":          {"2026-04-10T14:00:00+02:00", ptr.To[int32](14), "2026-04-10T12:00:00Z", unchanged, "2026-04-10T12:00:00Z", true},
		"not a time":                 {"tomorrow", ptr.To[int32](14), "2026-04-01T12:00:00Z", regular, regular, false},
		"limit lowered":              {regular, ptr.To[int32](1), "2026-04-01T12:00:00Z", "2026-03-22T12:00:00Z", "2026-03-22T12:00:00Z", true},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		got := Decide(shootWith(test.annotation), test.lifetime, now)
		expires := ""
		if !got.Expires.IsZero() {
			expires = got.Expires.UTC().Format(time.RFC3339)
		}
		if ptr.Deref(got.Annotation, unchanged) != test.written || expires != test.expires || got.Delete != test.want {
			t.Errorf("%s: got %+v, annotation %q", name, got, ptr.Deref(got.Annotation, unchanged))
		}
		deleted := shootWith(test.annotation)
		deleted.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		if got := Decide(deleted, test.lifetime, now); got != (Decision{}) {
			t.Errorf("%s, while it is being deleted: got %+v", name, got)
		}
		kept := &corev1beta1.Shoot{}
		Keep(kept, shootWith(test.annotation))
		if again := Decide(kept, test.lifetime, now); again.Delete != got.Delete || !again.Expires.Equal(got.Expires) || kept.Annotations["other"] != "" {
			t.Errorf("%s: from what the cache keeps: %+v", name, again)
		}
	}
}

func TestLifetime(t *testing.T) {
	quota := func(days *int32) *corev1beta1.Quota {
		return &corev1beta1.Quota{Spec: corev1beta1.QuotaSpec{ClusterLifetimeDays: days}}
	}
	if got := Lifetime([]*corev1beta1.Quota{quota(nil), quota(ptr.To[int32](7)), quota(ptr.To[int32](3)), quota(nil)}); got == nil || *got != 3 {
		t.Errorf("got %v", got)
	}
	if got := Lifetime([]*corev1beta1.Quota{quota(nil)}); got != nil {
		t.Errorf("without a limit: got %d", *got)
	}
}

// TestMass checks that a clock or a Quota that is wrong does not delete many Shoots at once, and that the usual few are deleted.
func TestMass(t *testing.T) {
	now := created.Add(30 * day)
	for name, test := range map[string]struct {
		ended, running int
		want           bool
	}{
		"none": {0, 100, false}, "a few": {30, 70, false}, "many": {31, 69, true}, "all of few": {10, 0, false}, "all": {11, 0, true},
	} {
		shoots := []corev1beta1.Shoot{*shootWith("-"), *shootWith("never")}
		for range test.ended {
			shoots = append(shoots, *shootWith(now.Format(time.RFC3339)))
		}
		for range test.running {
			shoots = append(shoots, *shootWith(now.Add(time.Second).Format(time.RFC3339)))
		}
		if ended, all, got := Mass(shoots, now); got != test.want || ended != test.ended || all != test.ended+test.running {
			t.Errorf("%s: %d of %d, %t", name, ended, all, got)
		}
	}
}
