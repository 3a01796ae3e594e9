package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// alwaysEncrypted is the resource that each Shoot has encrypted. The status does not name it.
const alwaysEncrypted = "secrets"

// taskRewrite begins the names of the tasks that rewrite all objects of a resource, so that etcd has them as the configuration says.
const taskRewrite = "rewrite-"

// encryptionProvider returns how the Shoot has its data encrypted.
func (in Inputs) encryptionProvider() corev1beta1.EncryptionProviderType {
	if config := in.server().EncryptionConfig; config != nil {
		return ptr.Deref(config.Provider.Type, corev1beta1.EncryptionProviderTypeAESCBC)
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// encryptedResources returns the resources that are to be encrypted in etcd, sorted behind Secrets.
func (in Inputs) encryptedResources() []string {
	var resources []string
	if config := in.server().EncryptionConfig; config != nil {
		resources = config.Resources
	}
	return append([]string{alwaysEncrypted}, canonical(resources)...)
}

// encryptedBefore returns those that were encrypted when the last operation succeeded.
func (in Inputs) encryptedBefore() []string {
	var resources []string
	if credentials := in.Shoot.Status.Credentials; credentials != nil && credentials.EncryptionAtRest != nil {
		resources = credentials.EncryptionAtRest.Resources
	}
	return append([]string{alwaysEncrypted}, canonical(resources)...)
}

// canonical sorts resources. The API server knows those of the core group by their names alone.
func canonical(resources []string) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, strings.TrimSuffix(resource, ".core"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// decryptedResources returns the resources that were encrypted and are not to be any more, until all of their objects are rewritten.
func (in Inputs) decryptedResources() []string {
	wanted := in.encryptedResources()
	return slices.DeleteFunc(in.encryptedBefore(), func(resource string) bool {
		return slices.Contains(wanted, resource) || in.done(in.rewrite(resource))
	})
}

// encryptionChanges reports whether other resources are encrypted than the Shoot declares.
func (in Inputs) encryptionChanges() bool {
	return !slices.Equal(in.encryptedResources(), in.encryptedBefore())
}

// rewrites returns the tasks of rewriting objects: those of all resources if the key is rotated, otherwise those of the resources that have become
// encrypted, or are not any more.
func (in Inputs) rewrites() []flow.Task {
	wanted, before := in.encryptedResources(), in.encryptedBefore()
	rotates := slices.ContainsFunc(cycles(in.rotation()), func(c cycle) bool { return c.credential == encryptionKeyRotated && c.isPreparing() })
	all := slices.Concat(wanted, before)
	slices.Sort(all)
	var tasks []flow.Task
	for _, resource := range slices.Compact(all) {
		if rotates || slices.Contains(wanted, resource) != slices.Contains(before, resource) {
			tasks = append(tasks, in.rewrite(resource))
		}
	}
	return tasks
}

// rewrite returns the task of rewriting the objects of a resource. It is another one for another key, and for a resource that is not to be encrypted.
func (in Inputs) rewrite(resource string) flow.Task {
	value := "plain"
	if slices.Contains(in.encryptedResources(), resource) {
		value = in.Secrets[constants.SecretNameETCDEncryptionKey].Current.Name
	}
	return flow.Task{Name: taskRewrite + resource, Value: value}
}
