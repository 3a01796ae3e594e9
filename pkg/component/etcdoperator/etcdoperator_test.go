package etcdoperator

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/component/internal/golden"
)

func TestObjects(t *testing.T) {
	for name, values := range map[string]Values{
		"seed": {},
		"seed-with-settings": {
			PriorityClass: "gardener-garden-system-300", Workers: 3, LogLevel: "debug", LogFormat: "text", VerticalPodAutoscaler: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			values.Namespace, values.Image, values.MemberImage = "garden", "etcd-operator:v1", "etcd-member:v1"
			objects, err := Objects(values)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

func TestUnknownImage(t *testing.T) {
	if _, err := Objects(Values{Namespace: "garden", Image: "etcd-operator:v1"}); err == nil {
		t.Error("no error without an image for members")
	}
}
