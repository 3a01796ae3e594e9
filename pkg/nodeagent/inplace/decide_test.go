package inplace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// TestNeeded checks for which changes of a configuration the Pods of a node must be gone.
func TestNeeded(t *testing.T) {
	at := metav1.NewTime(time.Unix(1e9, 0))
	config := func(change ...func(*osc.Config)) *osc.Config {
		c := &osc.Config{
			InPlaceUpdates: &extensionsv1alpha1.InPlaceUpdates{OperatingSystemVersion: "1.0", KubeletVersion: "1.37.1"},
			Files: []extensionsv1alpha1.File{{Path: paths.KubeletConfig, Content: extensionsv1alpha1.FileContent{
				Inline: &extensionsv1alpha1.FileContentInline{Data: "evictionHard: {memory.available: 100Mi}\nmaxPods: 110"},
			}}},
		}
		for _, each := range change {
			each(c)
		}
		return c
	}
	kubelet := func(text string) func(*osc.Config) {
		return func(c *osc.Config) { c.Files[0].Content.Inline.Data = text }
	}
	rotated := func(of *extensionsv1alpha1.CredentialsRotation) func(*osc.Config) {
		return func(c *osc.Config) { c.InPlaceUpdates.CredentialsRotation = of }
	}
	version := func(of string) func(*osc.Config) {
		return func(c *osc.Config) { c.InPlaceUpdates.KubeletVersion = of }
	}
	replaced := func(c *osc.Config) { c.InPlaceUpdates = nil }
	for name, test := range map[string]struct {
		wanted, last *osc.Config
		runs         string
		want         Updates
	}{
		"nothing":               {config(), config(), "1.0", Updates{}},
		"a new machine":         {config(), nil, "0.9", Updates{}},
		"machines are replaced": {config(version("1.38.0"), replaced), config(replaced), "0.9", Updates{}},
		"operating system":      {config(), config(), "0.9", Updates{OperatingSystem: "1.0"}},
		"minor version":         {config(version("1.38.0")), config(), "1.0", Updates{Kubelet: true}},
		"patch version":         {config(version("1.37.9")), config(), "1.0", Updates{}},
		"eviction":              {config(kubelet("evictionHard: {memory.available: 200Mi}\nmaxPods: 110")), config(), "1.0", Updates{Kubelet: true}},
		"reserved":              {config(kubelet("evictionHard: {memory.available: 100Mi}\nkubeReserved: {cpu: 80m}")), config(), "1.0", Updates{Kubelet: true}},
		"CPU manager":           {config(kubelet("evictionHard: {memory.available: 100Mi}\ncpuManagerPolicy: static")), config(), "1.0", Updates{Kubelet: true}},
		"other settings":        {config(kubelet("evictionHard: {memory.available: 100Mi}\nmaxPods: 200")), config(), "1.0", Updates{}},
		"authorities": {config(rotated(&extensionsv1alpha1.CredentialsRotation{
			CertificateAuthorities: &extensionsv1alpha1.CARotation{LastInitiationTime: &at},
		})), config(), "1.0", Updates{Authorities: true}},
		"key": {config(rotated(&extensionsv1alpha1.CredentialsRotation{
			ServiceAccountKey: &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: &at},
		})), config(), "1.0", Updates{ServiceAccountKey: true}},
	} {
		if got, err := Needed(test.wanted, test.last, test.runs); err != nil || got != test.want {
			t.Errorf("%s: got %+v: %v, want %+v", name, got, err, test.want)
		}
	}
	for name, wrong := range map[string]*osc.Config{"version": config(version("x")), "settings": config(kubelet(":"))} {
		if _, err := Needed(wrong, config(), "1.0"); err == nil {
			t.Errorf("a wrong %s is accepted", name)
		}
	}
}

func TestMayBegin(t *testing.T) {
	node := func(reason, result string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		if result != "" {
			n.Labels[LabelResult] = result
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Reason: ReasonReady}, {Type: Condition, Reason: reason}}
		return n
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"no Node":                     {nil, false},
		"chosen":                      {node("SelectedForUpdate", ""), false},
		"without Pods":                {node(ReasonReady, ""), true},
		"the last update failed":      {node("UpdateFailed", Failed), true},
		"the last update has not end": {node(ReasonReady, Successful), false},
		"after the last update":       {node("UpdateSuccessful", Successful), false},
	} {
		if got := MayBegin(test.node); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=\"x\"\nPRETTY_NAME=\"Garden Linux 1592.3\"\nVERSION_ID=7": "1592.3",
		"PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"":                  "13",
		"PRETTY_NAME=Arch": "", "NAME=\"x 1\"": "", "": "",
	} {
		if got, err := VersionOf([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q: %v", text, got, err)
		}
	}
}

// TestUpdatesAreAdded checks that what an interrupted update had to do is not forgotten with the next configuration.
func TestUpdatesAreAdded(t *testing.T) {
	begun, next := Updates{OperatingSystem: "2", Authorities: true}, Updates{Kubelet: true}
	if got := begun.and(next); got != (Updates{Authorities: true, Kubelet: true}) {
		t.Errorf("got %+v", got)
	}
	next.OperatingSystem = "3"
	if got := begun.and(next); got.OperatingSystem != "3" || got.String() != "operating system 3, kubelet, certificate authorities" {
		t.Errorf("got %s", got)
	}
}
