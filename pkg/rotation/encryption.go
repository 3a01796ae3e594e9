package rotation

import (
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// taskRewrite is the prefix of the names of tasks that rewrite all objects of a resource, so that etcd stores them according to the configuration.
const taskRewrite = "rewrite-"

// IsRewrite reports whether a task rewrites objects.
func IsRewrite(task flow.Task) bool { return strings.HasPrefix(task.Name, taskRewrite) }

// Canonical sorts resources and removes the suffix of the core group, which API servers do not accept.
func Canonical(resources []string) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, strings.TrimSuffix(resource, ".core"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Encryption is what one API server encrypts in etcd. A resource whose encryption changes is read in both forms by all replicas before one of them
// writes the new form, and until all of its objects are rewritten.
type Encryption struct {
	// Wanted are the resources to encrypt. Before are those that were encrypted when the last operation succeeded.
	Wanted, Before []string
	// Reported is set if Before is known. Until then, the API server has no users.
	Reported bool
	// Key is the name of the Secret with the newest key; empty if it is not known yet.
	Key string
	// Rotated is set while a new key is being prepared.
	Rotated bool
	// Done reports whether a task was executed.
	Done func(flow.Task) bool
}

// Encrypting returns the resources that the API server encrypts. It encrypts a new resource once all replicas can decrypt it.
func (e Encryption) Encrypting() []string {
	return slices.DeleteFunc(slices.Clone(e.Wanted), func(resource string) bool {
		return !slices.Contains(e.Before, resource) && e.Reported && !e.Done(e.readable(resource))
	})
}

// Decrypting returns the resources that the API server can decrypt but does not encrypt: those that will be encrypted next, and those that are no
// longer encrypted, until all of their objects are rewritten.
func (e Encryption) Decrypting() []string {
	encrypting := e.Encrypting()
	return slices.DeleteFunc(slices.Concat(e.Before, e.Wanted), func(resource string) bool {
		return slices.Contains(encrypting, resource) || !slices.Contains(e.Wanted, resource) && e.Done(e.rewrite(resource))
	})
}

// Changing returns the resources whose encryption must be switched on or off.
func (e Encryption) Changing() []string {
	return slices.DeleteFunc(Canonical(slices.Concat(e.Wanted, e.Before)), func(resource string) bool {
		return slices.Contains(e.Wanted, resource) == slices.Contains(e.Before, resource)
	})
}

// Readables returns tasks that are done once all replicas of the API server can read the resources whose encryption changes.
func (e Encryption) Readables() []flow.Task {
	if !e.Reported || e.Key == "" {
		return nil
	}
	var tasks []flow.Task
	for _, resource := range e.Changing() {
		tasks = append(tasks, e.readable(resource))
	}
	return tasks
}

// Rewrites returns the tasks that rewrite objects. They cover all encrypted resources if the key is rotated, otherwise the resources whose
// encryption changes.
func (e Encryption) Rewrites() []flow.Task {
	resources := e.Changing()
	if e.Rotated {
		resources = Canonical(slices.Concat(e.Wanted, e.Before))
	}
	var tasks []flow.Task
	for _, resource := range resources {
		tasks = append(tasks, e.rewrite(resource))
	}
	return tasks
}

// readable returns the task that is done once all replicas of the API server can read a resource, encrypted or not.
func (e Encryption) readable(resource string) flow.Task {
	return flow.Task{Name: "distribute-encryption-of-" + resource, Value: e.rewrite(resource).Value}
}

// rewrite returns the task that rewrites the objects of a resource. Its value identifies the key, or is "plain" for a resource without encryption.
func (e Encryption) rewrite(resource string) flow.Task {
	value := "plain"
	if slices.Contains(e.Wanted, resource) {
		value = e.Key
	}
	return flow.Task{Name: taskRewrite + resource, Value: value}
}
