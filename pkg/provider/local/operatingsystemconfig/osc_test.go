package operatingsystemconfig

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

var secrets = func(name string) (map[string][]byte, error) {
	if name != "token" {
		return nil, errors.New("not found")
	}
	return map[string][]byte{"token": []byte("secret")}, nil
}

func inline(path, encoding, data string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: encoding, Data: data}}}
}

func provision() *extensionsv1alpha1.OperatingSystemConfig {
	object := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "pool-init"}}
	object.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeProvision
	plain := inline("/etc/machine-name", "", "<<MACHINE_NAME>>\n")
	plain.Content.TransmitUnencoded = ptr.To(true)
	program := inline("/opt/bin/it's", "b64", "IyEvYmluL3NoCg==")
	program.Permissions = ptr.To[uint32](0o755)
	elsewhere := inline("/etc/elsewhere", "", "a")
	elsewhere.HostName = ptr.To("another-host")
	object.Spec.Files = []extensionsv1alpha1.File{
		inline("/etc/text", "", "text\n"), plain, program, elsewhere,
		{Path: "/etc/token", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "token", DataKey: "token"}}},
	}
	object.Spec.Units = []extensionsv1alpha1.Unit{
		{Name: "a.service", Content: ptr.To("[Service]\nExecStart=/bin/true\n"), DropIns: []extensionsv1alpha1.DropIn{{Name: "b.conf", Content: "[Unit]\n"}}},
		{Name: "c.service", Enable: ptr.To(false), Command: ptr.To(extensionsv1alpha1.CommandStop)},
	}
	return object
}

func TestProvision(t *testing.T) {
	object := provision()
	plan, err := Plan(object, secrets)
	if err != nil {
		t.Fatal(err)
	}
	secret, ok := plan.Bundles[0].Objects[0].(*corev1.Secret)
	if !ok || object.Status.CloudConfig.SecretRef.Name != secret.Name || object.Status.CloudConfig.SecretRef.Namespace != secret.Namespace {
		t.Fatalf("the status refers to %+v", object.Status.CloudConfig)
	}
	golden.CheckText(t, "provision.sh", string(secret.Data[KeyUserData]))
}

// TestScriptRuns checks that the shell script writes the files, and does nothing the second time.
func TestScriptRuns(t *testing.T) {
	object := provision()
	plan, err := Plan(object, secrets)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := plan.Bundles[0].Objects[0].(*corev1.Secret)
	root := t.TempDir()
	// The paths are redirected below a directory, and a fake systemctl records its arguments.
	text := strings.NewReplacer(" /var/lib/osc", " "+root+"/var/lib/osc", "'/", "'"+root+"/", "systemctl ", root+"/systemctl ").Replace(string(secret.Data[KeyUserData]))
	if err := os.WriteFile(filepath.Join(root, "systemctl"), []byte("#!/bin/sh\necho \"$@\" >> "+root+"/calls\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		command := exec.CommandContext(t.Context(), "bash")
		command.Stdin = strings.NewReader(text)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	for name, want := range map[string]string{
		"etc/text": "text\n", "etc/machine-name": "<<MACHINE_NAME>>\n", "opt/bin/it's": "#!/bin/sh\n", "etc/token": "secret",
		"etc/systemd/system/a.service": "[Service]\nExecStart=/bin/true\n", "etc/systemd/system/a.service.d/b.conf": "[Unit]\n",
		"calls": "daemon-reload\nenable a.service\n--no-block restart a.service\ndisable c.service\n--no-block stop c.service\n",
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "opt", "bin", "it's")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of the program is %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(root, "etc", "elsewhere")); err == nil {
		t.Error("the file of another host exists")
	}
}

func TestReconcile(t *testing.T) {
	object := &extensionsv1alpha1.OperatingSystemConfig{}
	object.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeReconcile
	object.Spec.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdates{OperatingSystemVersion: "1.2.0"}
	plan, err := Plan(object, secrets)
	if err != nil || len(plan.Bundles) != 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	golden.CheckPlan(t, "reconcile", flow.Plan{}, object.Status)
}

func TestInvalidFiles(t *testing.T) {
	unencoded := inline("/etc/a", "", "a "+endOfText)
	unencoded.Content.TransmitUnencoded = ptr.To(true)
	for want, file := range map[string]extensionsv1alpha1.File{
		"decode content.inline.data": inline("/etc/a", "b64", "#"),
		"cannot be sent unencoded":   unencoded,
		"content is empty":           {Path: "/etc/a"},
		"content.imageRef":           {Path: "/etc/a", Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: "a"}}},
		"read Secret other":          {Path: "/etc/a", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "other"}}},
		`has no key "other"`:         {Path: "/etc/a", Content: extensionsv1alpha1.FileContent{SecretRef: &extensionsv1alpha1.FileContentSecretRef{Name: "token", DataKey: "other"}}},
	} {
		object := provision()
		object.Spec.Files = []extensionsv1alpha1.File{file}
		if _, err := Plan(object, secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
