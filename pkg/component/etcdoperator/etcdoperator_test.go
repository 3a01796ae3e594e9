package etcdoperator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	for name, values := range map[string]Values{
		"seed":   {},
		"garden": {Etcds: []string{"virtual-garden-etcd-main", "virtual-garden-etcd-events"}},
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

// TestConfiguration checks that the program accepts the file and reads the values that were written.
func TestConfiguration(t *testing.T) {
	text, err := configuration(Values{Namespace: "garden", MemberImage: "etcd-member:v1", Workers: 7, LogLevel: "debug", LogFormat: "text"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), configFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.LoadOperator(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.MemberImage != "etcd-member:v1" || got.LogLevel != "debug" || got.LogFormat != "text" || got.LeaderElection.ResourceNamespace != "garden" ||
		got.Controllers.Etcd.ConcurrentSyncs != 7 || got.Controllers.Etcd.ResourceClass != resourceClass ||
		got.Server.HealthProbes.Port != portHealth || got.Server.Metrics.Port != portMetrics {
		t.Errorf("the program read %+v", got)
	}
}
