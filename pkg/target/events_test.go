package target

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestIsRelated checks which Events explain why the workload "etcd-main" is unhealthy.
func TestIsRelated(t *testing.T) {
	for name, test := range map[string]struct {
		about corev1.ObjectReference
		want  bool
	}{
		"the workload":                           {corev1.ObjectReference{Kind: "StatefulSet", Name: "etcd-main", UID: "1"}, true},
		"a former workload of the same name":     {corev1.ObjectReference{Kind: "StatefulSet", Name: "etcd-main", UID: "0"}, false},
		"a Pod of it":                            {corev1.ObjectReference{Kind: "Pod", Name: "etcd-main-0", UID: "2"}, true},
		"a Pod of another workload":              {corev1.ObjectReference{Kind: "Pod", Name: "etcd-mainframe-0", UID: "3"}, false},
		"the ManagedResource that it belongs to": {corev1.ObjectReference{Kind: "ManagedResource", Name: "etcd-main-members", UID: "4"}, false},
	} {
		if got := isRelated(corev1.Event{InvolvedObject: test.about}, "etcd-main", "1"); got != test.want {
			t.Errorf("%s: isRelated returned %t", name, got)
		}
	}
}
