package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

const (
	// rewritePage is how many objects one reconcile rewrites. This takes a few seconds at the rate limit for requests to a shoot.
	rewritePage = 500
	// shootQPS limits the requests of gardenlet to the API server of a shoot, per second.
	shootQPS = 100
)

// cursor is the position in the rewrite of the objects of one resource.
type cursor struct {
	task flow.Task
	// next is the continue token of the list. count is the number of objects that have been rewritten.
	next  string
	count int
}

// rewriteObjects makes the API server write all objects of a resource into etcd again, encrypted with the active key or
// not encrypted. Each call rewrites one page. After a restart it starts from the beginning. The API server skips objects
// that etcd already stores according to its configuration.
func (r *reconciler) rewriteObjects(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	if in.hibernated() {
		return flow.Outcome{Progress: "objects are rewritten after the shoot has woken up"}, nil
	}
	shoot, err := r.connect(in)
	if err != nil {
		return flow.Outcome{}, err
	}
	resource := strings.TrimPrefix(task.Name, taskRewrite)
	kind, err := shoot.RESTMapper().KindFor(schema.ParseGroupResource(resource).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return flow.Outcome{Done: true}, nil // the API server does not serve the resource, so it has no objects
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("find resource %s in shoot %s: %w", resource, in.Namespace, err)
	}
	at := r.rewritten(in.Owner.UID, task)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = shoot.List(ctx, list, client.Limit(rewritePage), client.Continue(at.next))
	if apierrors.IsResourceExpired(err) {
		at.next, at.count = "", 0
		r.keepCursor(in.Owner.UID, at)
		return flow.Outcome{Progress: "the list of " + resource + " starts again", Again: time.Millisecond}, nil
	}
	if err != nil {
		return flow.Outcome{}, fmt.Errorf("list %s of shoot %s: %w", resource, in.Namespace, err)
	}
	for i := range list.Items {
		if err := rewriteObject(ctx, shoot, kind, &list.Items[i]); err != nil {
			return flow.Outcome{}, fmt.Errorf(
				"rewrite %s %s of shoot %s: %w", resource, client.ObjectKeyFromObject(&list.Items[i]), in.Namespace, err,
			)
		}
	}
	at.count += len(list.Items)
	if at.next = list.Continue; at.next == "" {
		r.keepCursor(in.Owner.UID, cursor{})
		return flow.Outcome{Done: true}, nil
	}
	r.keepCursor(in.Owner.UID, at)
	return flow.Outcome{Progress: fmt.Sprintf("%d %s have been rewritten", at.count, resource), Again: time.Millisecond}, nil
}

// rewriteObject sends a patch that changes nothing. The API server still writes the object if etcd stores it with another
// key. Objects that were created or changed since the list are already stored correctly.
func rewriteObject(ctx context.Context, shoot client.Client, kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}})
	if err != nil {
		return err
	}
	object.SetGroupVersionKind(kind)
	err = shoot.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// rewritten returns the position in a rewrite task.
func (r *reconciler) rewritten(owner types.UID, task flow.Task) cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.rewrites[owner]; at.task == task {
		return at
	}
	return cursor{task: task}
}

// continuesRewrite reports whether the first of the tasks has rewritten a page of objects, and continues with the next one.
func (r *reconciler) continuesRewrite(in Inputs, tasks []flow.Task) bool {
	return len(tasks) > 0 && r.rewritten(in.Owner.UID, tasks[0]).next != ""
}

// keepCursor stores the position in a rewrite task. A cursor without a task removes it.
func (r *reconciler) keepCursor(owner types.UID, at cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.task == (flow.Task{}) {
		delete(r.rewrites, owner)
		return
	}
	r.rewrites[owner] = at
}
