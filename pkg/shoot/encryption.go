package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// alwaysEncrypted is the resource that is encrypted in every Shoot. The status does not contain it.
const alwaysEncrypted = "secrets"

// taskRewrite is the prefix of the names of tasks that rewrite all objects of a resource, so that etcd stores them
// according to the configuration.
const taskRewrite = "rewrite-"

// encryptionProvider returns the declared encryption provider, or the default.
func (in Inputs) encryptionProvider() corev1beta1.EncryptionProviderType {
	if config := in.server().EncryptionConfig; config != nil {
		return ptr.Deref(config.Provider.Type, corev1beta1.EncryptionProviderTypeAESCBC)
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// encryptedResources returns the resources that must be encrypted in etcd: Secrets first, then the others, sorted.
func (in Inputs) encryptedResources() []string {
	var resources []string
	if config := in.server().EncryptionConfig; config != nil {
		resources = config.Resources
	}
	return append([]string{alwaysEncrypted}, canonical(resources)...)
}

// encryptedBefore returns the resources that were encrypted when the last operation succeeded.
func (in Inputs) encryptedBefore() []string {
	var resources []string
	if credentials := in.Shoot.Status.Credentials; credentials != nil && credentials.EncryptionAtRest != nil {
		resources = credentials.EncryptionAtRest.Resources
	}
	return append([]string{alwaysEncrypted}, canonical(resources)...)
}

// canonical sorts resources and removes the suffix of the core group, which the API server does not accept.
func canonical(resources []string) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, strings.TrimSuffix(resource, ".core"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// encrypting returns the resources that the API server encrypts. It encrypts a new resource once all replicas can decrypt it.
func (in Inputs) encrypting() []string {
	before := in.encryptedBefore()
	return slices.DeleteFunc(in.encryptedResources(), func(resource string) bool {
		return !slices.Contains(before, resource) && in.isReported() && !in.done(in.readable(resource))
	})
}

// decrypting returns the resources that the API server can decrypt but does not encrypt: those that will be encrypted
// next, and those that are no longer encrypted, until all of their objects are rewritten.
func (in Inputs) decrypting() []string {
	wanted, encrypting := in.encryptedResources(), in.encrypting()
	all := append(in.encryptedBefore(), wanted...)
	return slices.DeleteFunc(all, func(resource string) bool {
		return slices.Contains(encrypting, resource) || !slices.Contains(wanted, resource) && in.done(in.rewrite(resource))
	})
}

// isReported reports whether the status contains the encrypted resources. Until then, the cluster has no users.
func (in Inputs) isReported() bool {
	return in.Shoot.Status.Credentials != nil && in.Shoot.Status.Credentials.EncryptionAtRest != nil
}

// changing returns the resources whose encryption must be switched on or off.
func (in Inputs) changing() []string {
	wanted, before := in.encryptedResources(), in.encryptedBefore()
	return slices.DeleteFunc(canonical(slices.Concat(wanted, before)), func(resource string) bool {
		return slices.Contains(wanted, resource) == slices.Contains(before, resource)
	})
}

// encryptionChanges reports whether the encrypted resources differ from the declared ones.
func (in Inputs) encryptionChanges() bool { return len(in.changing()) > 0 }

// readables returns tasks that are done once all replicas of the API server can read the resources whose encryption changes.
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

// readable returns the task that is done once all replicas of the API server can read a resource, encrypted or not.
func (in Inputs) readable(resource string) flow.Task {
	return flow.Task{Name: "distribute-encryption-of-" + resource, Value: in.rewrite(resource).Value}
}

// rewrites returns the tasks that rewrite objects. They cover all encrypted resources if the key is rotated, otherwise
// the resources whose encryption changes.
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

// rewrite returns the task that rewrites the objects of a resource. Its value identifies the key, or is "plain" for a
// resource without encryption.
func (in Inputs) rewrite(resource string) flow.Task {
	value := "plain"
	if slices.Contains(in.encryptedResources(), resource) {
		value = in.Secrets[constants.SecretNameETCDEncryptionKey].Current.Name
	}
	return flow.Task{Name: taskRewrite + resource, Value: value}
}
