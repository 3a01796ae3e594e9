package nodeagent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	componentnodeagent "github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	"github.com/trellis-k8s/trellis/test/kit"
)

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := yaml.Marshal(value)
	kit.Must(t, err)
	return text
}

// textFile returns a file with a content.
func textFile(path, content string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}}}
}

// service returns a unit that uses files.
func service(name string, files ...string) extensionsv1alpha1.Unit {
	return extensionsv1alpha1.Unit{Name: name, Content: ptr.To("[Service]\n"), FilePaths: files}
}

// basic returns a configuration with two services that have a file each.
func basic() *extensionsv1alpha1.OperatingSystemConfig {
	c := &extensionsv1alpha1.OperatingSystemConfig{}
	c.Spec.Files = []extensionsv1alpha1.File{textFile("/etc/a", "a1"), textFile("/etc/b", "b1")}
	c.Spec.Units = []extensionsv1alpha1.Unit{service("a.service", "/etc/a"), service("b.service", "/etc/b")}
	return c
}

// offer writes the Secret of the machine's pool as gardenlet does, and returns its checksum.
func (m *machine) offer(c *extensionsv1alpha1.OperatingSystemConfig) string {
	m.Helper()
	objects, err := componentnodeagent.Objects([]componentnodeagent.Config{{Key: m.pool, Pool: m.name, Object: *c}})
	kit.Must(m, err)
	secret, _ := objects[0].(*corev1.Secret)
	m.put(secret)
	return secret.Annotations[componentnodeagent.AnnotationChecksum]
}

// put creates or replaces a Secret, except annotations of others.
func (m *machine) put(secret *corev1.Secret) {
	m.Helper()
	current := &corev1.Secret{}
	err := m.admin.Get(m.Context(), client.ObjectKeyFromObject(secret), current)
	if apierrors.IsNotFound(err) {
		kit.Must(m, m.admin.Create(m.Context(), secret))
		return
	}
	kit.Must(m, err)
	kit.Change(m, m.admin, current, func() {
		current.Labels, current.Data = secret.Labels, secret.Data
		for key, value := range secret.Annotations {
			metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
		}
	})
}

// join creates the Node, as kubelet does. The node agent needs its certificate before: a bootstrap token is not sufficient for a machine with a Node.
func (m *machine) join() {
	m.Helper()
	kit.EventuallyTrue(m, "the node agent has a certificate", func() bool {
		m.tick()
		return m.certificate() != nil
	})
	m.register()
}

// register creates the Node.
func (m *machine) register() {
	m.Helper()
	kit.Must(m, m.admin.Create(m.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{
		corev1.LabelHostname: m.name, constants.LabelWorkerPoolNodeAgentSecretName: m.pool, constants.LabelWorkerPool: m.name,
	}}}))
}

func (m *machine) node() *corev1.Node {
	m.Helper()
	node := &corev1.Node{}
	kit.Must(m, m.admin.Get(m.Context(), client.ObjectKey{Name: m.name}, node))
	return node
}

// applied waits until the Node has a checksum.
func (m *machine) applied(checksum string) {
	m.Helper()
	kit.Eventually(m, "the Node says that the configuration is applied", func() string {
		m.tick()
		if got := m.node().Annotations[constants.AnnotationChecksumCloudConfigData]; got != checksum {
			return "the checksum is " + got
		}
		return ""
	})
}

// event waits for an Event about the Node with a reason and a part of its message.
func (m *machine) event(reason, part string) {
	m.Helper()
	kit.Eventually(m, "there is an Event "+reason, func() string {
		list, seen := &corev1.EventList{}, ""
		if err := m.admin.List(m.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err.Error()
		}
		for _, event := range list.Items {
			if event.InvolvedObject.Kind == "Node" && event.InvolvedObject.Name == m.name {
				if event.Reason == reason && strings.Contains(event.Message, part) {
					return ""
				}
				seen += event.Reason + ": " + event.Message + "\n"
			}
		}
		return "seen are " + seen
	})
}
