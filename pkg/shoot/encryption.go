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

// encrypting returns the resources that the API server encrypts. It does so with a new one when all replicas can read what is encrypted of it.
func (in Inputs) encrypting() []string {
	before := in.encryptedBefore()
	return slices.DeleteFunc(in.encryptedResources(), func(resource string) bool {
		return !slices.Contains(before, resource) && in.isReported() && !in.done(in.readable(resource))
	})
}

// decrypting returns the resources that the API server does not encrypt, and reads if they are: those that are to be encrypted soon, and those that are
// not to be any more, until all of their objects are rewritten.
func (in Inputs) decrypting() []string {
	wanted, encrypting := in.encryptedResources(), in.encrypting()
	all := append(in.encryptedBefore(), wanted...)
	return slices.DeleteFunc(all, func(resource string) bool {
		return slices.Contains(encrypting, resource) || !slices.Contains(wanted, resource) && in.done(in.rewrite(resource))
	})
}

// isReported reports whether the status has what is encrypted. Before, the cluster has no users.
func (in Inputs) isReported() bool {
	return in.Shoot.Status.Credentials != nil && in.Shoot.Status.Credentials.EncryptionAtRest != nil
}

// changing returns the resources that are to be encrypted and are not, or the other way round.
func (in Inputs) changing() []string {
	wanted, before := in.encryptedResources(), in.encryptedBefore()
	return slices.DeleteFunc(canonical(slices.Concat(wanted, before)), func(resource string) bool {
		return slices.Contains(wanted, resource) == slices.Contains(before, resource)
	})
}

// encryptionChanges reports whether other resources are encrypted than the Shoot declares.
func (in Inputs) encryptionChanges() bool { return len(in.changing()) > 0 }

// readables returns the tasks of finding that all replicas of the API server know how a resource is encrypted that changes in this.
func (in Inputs) readables() []flow.Task {
	if !in.isReported() || in.unknownSecrets() != "" {
		return nil
	}
	var tasks []flow.Task
	for _, resource := range in.changing() {
		tasks = append(tasks, in.readable(resource))
	}
	return tasks
}

func (in Inputs) readable(resource string) flow.Task {
	return flow.Task{Name: "distribute-encryption-of-" + resource, Value: in.rewrite(resource).Value}
}

// rewrites returns the tasks of rewriting objects: those of all resources if the key is rotated, otherwise those of the resources that have become
// encrypted, or are not any more.
func (in Inputs) rewrites() []flow.Task {
	resources := in.changing()
	if slices.ContainsFunc(cycles(in.rotation()), func(c cycle) bool { return c.credential == encryptionKeyRotated && c.isPreparing() }) {
		resources = canonical(slices.Concat(in.encryptedResources(), in.encryptedBefore()))
	}
	var tasks []flow.Task
	for _, resource := range resources {
		tasks = append(tasks, in.rewrite(resource))
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
