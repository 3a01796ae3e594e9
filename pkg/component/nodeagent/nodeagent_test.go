package nodeagent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	nodeagentconfig "github.com/trellis-k8s/trellis/pkg/nodeagent/config"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func config() Config {
	object := extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	object.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service", Content: ptr.To("[Unit]\n")}}
	object.Status.ExtensionUnits = []extensionsv1alpha1.Unit{{Name: "of-the-extension.service"}}
	return Config{Key: "gardener-node-agent-small-0123456789abcdef", Pool: "small", Object: object}
}

func TestObjects(t *testing.T) {
	objects, err := Objects([]Config{config()})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "objects", objects)
}

// TestOperationsChangeNothing checks that nodes apply nothing again only because an operation of an extension was requested.
func TestOperationsChangeNothing(t *testing.T) {
	checksum := func(config Config) string {
		objects, err := Objects([]Config{config})
		if err != nil {
			t.Fatal(err)
		}
		secret, _ := objects[0].(*corev1.Secret)
		return secret.Annotations[AnnotationChecksum]
	}
	again := config()
	again.Object.Annotations["gardener.cloud/timestamp"] = time.Now().Format(time.RFC3339)
	again.Object.Status.LastOperation, again.Object.Generation = nil, 7
	if checksum(config()) != checksum(again) {
		t.Error("an operation changes the configuration of nodes")
	}
	again.Object.Spec.Units[0].Content = ptr.To("[Service]\n")
	if checksum(config()) == checksum(again) {
		t.Error("a change of a unit does not change the checksum")
	}
}

func TestConfiguration(t *testing.T) {
	values := Values{Server: "https://api.example.org", SecretName: "gardener-node-agent-small", KubernetesVersion: "1.37.1", DataVolume: "50Gi"}
	text, err := Configuration(values)
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckText(t, "configuration.txt", text)
	read, err := nodeagentconfig.Parse([]byte(text)) // as the program does
	if err != nil || read.Controllers.OperatingSystemConfig.SecretName != values.SecretName {
		t.Errorf("the node agent reads %+v: %v", read, err)
	}
	values.DataVolume = "much"
	if _, err := Configuration(values); err == nil || !strings.Contains(err.Error(), `the data volume of kubelet "much"`) {
		t.Errorf("%v", err)
	}
}
