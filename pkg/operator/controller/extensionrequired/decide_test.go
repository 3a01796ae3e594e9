package extensionrequired

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

const everything = `spec:
  dns: {providers: [{type: local}]}
  extensions: [{type: filter}]
  virtualCluster: {etcd: {main: {backup: {provider: local}}}}
`

// TestInRuntime checks what makes the runtime cluster need an extension.
func TestInRuntime(t *testing.T) {
	for name, test := range map[string]struct {
		resources, garden, existing string
		deleting                    bool
		want                        string
	}{
		"no garden":           {"[{kind: DNSRecord, type: local}]", "", "", false, ""},
		"dns":                 {"[{kind: DNSRecord, type: local}]", everything, "", false, "DNSRecord/local"},
		"backup":              {"[{kind: BackupBucket, type: local}, {kind: BackupEntry, type: local}]", everything, "", false, "BackupBucket/local, BackupEntry/local"},
		"extension":           {"[{kind: Extension, type: filter}]", everything, "", false, "Extension/filter"},
		"other types":         {"[{kind: DNSRecord, type: other}, {kind: Network, type: local}, {kind: Extension, type: local}]", everything, "", false, ""},
		"enabled for gardens": {"[{kind: Extension, type: x, autoEnable: [garden]}]", "spec: {}", "", false, "Extension/x"},
		"enabled for seeds":   {"[{kind: Extension, type: x, autoEnable: [seed]}]", "spec: {}", "", false, ""},
		"objects exist":       {"[{kind: DNSRecord, type: local}]", "", "DNSRecord/local", false, "DNSRecord/local"},
		"garden is deleted":   {"[{kind: DNSRecord, type: local}, {kind: Extension, type: x, autoEnable: [garden]}]", everything, "", true, ""},
		"deleted, but exists": {"[{kind: DNSRecord, type: local}]", everything, "DNSRecord/local", true, "DNSRecord/local"},
	} {
		extension := decode[operatorv1alpha1.Extension](t, "spec: {resources: "+test.resources+"}")
		var garden *operatorv1alpha1.Garden
		if test.garden != "" {
			garden = decode[operatorv1alpha1.Garden](t, test.garden)
			if test.deleting {
				garden.DeletionTimestamp = ptr.To(metav1.Now())
			}
		}
		got := inRuntime(extension, garden, test.existing)
		if (got.Status == corev1beta1.ConditionTrue) != (test.want != "") || !strings.Contains(got.Message, test.want) {
			t.Errorf("%s: got %s, %s", name, got.Status, got.Message)
		}
	}
}

// TestInSeeds checks that only required installations of the extension count.
func TestInSeeds(t *testing.T) {
	installation := func(name, of, required string) corev1beta1.ControllerInstallation {
		return *decode[corev1beta1.ControllerInstallation](t, "{metadata: {name: "+name+"}, spec: {registrationRef: {name: "+of+"}}, "+
			"status: {conditions: [{type: Required, status: '"+required+"'}]}}")
	}
	extension := &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	if got := inSeeds(extension, nil); got.Status != "False" || got.Reason != reasonNoInstallation {
		t.Errorf("without installations: %v", got)
	}
	others := []corev1beta1.ControllerInstallation{installation("a", "other", "True"), installation("b", "local", "False"), installation("c", "local", "Unknown")}
	if got := inSeeds(extension, others); got.Status != "False" {
		t.Errorf("with others: %v", got)
	}
	many := others
	for _, name := range []string{"g", "f", "e", "d", "h", "i"} {
		many = append(many, installation(name, "local", "True"))
	}
	if got := inSeeds(extension, many); got.Status != "True" || !strings.Contains(got.Message, "d, e, f, g, h and 1 more") {
		t.Errorf("with many: %v", got)
	}
}
