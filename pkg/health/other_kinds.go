package health

import (
	"cmp"
	"reflect"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// OtherKinds says how objects of kinds that gardener-resource-manager has no rule for are checked. An unknown value counts
// as OtherKindsFailuresOnly.
type OtherKinds string

const (
	// OtherKindsFailuresOnly is the default and has them unhealthy if kstatus says that they failed, and well otherwise.
	OtherKindsFailuresOnly OtherKinds = "FailuresOnly"
	// OtherKindsFullStatus has them progressing, too, while kstatus says that they are in progress.
	OtherKindsFullStatus OtherKinds = "FullStatus"
)

// unobservedReason is kstatus' reason for an object whose status is about an older generation.
const unobservedReason = "LatestGenerationNotObserved"

// checkOther asks kstatus, which knows the conventions of Kubernetes for conditions and generations.
func checkOther(obj *unstructured.Unstructured, other OtherKinds) Verdict {
	result, err := status.Compute(obj)
	if err != nil {
		return Verdict{} // fields that are named as in the conventions, but mean something else: nothing can be said
	}
	detail := cmp.Or(result.Message, string(result.Status))
	switch {
	case result.Status == status.FailedStatus:
		return Verdict{Unhealthy: detail}
	case result.Status == status.InProgressStatus && other == OtherKindsFullStatus:
		stale := len(result.Conditions) > 0 && result.Conditions[0].Reason == unobservedReason
		return Verdict{Progressing: detail, Unobserved: stale}
	}
	return Verdict{}
}

// checkOtherTyped checks an object of client-go's scheme, to which a program may have added kinds that have a rule. It is not
// converted to find failures only of others: kstatus finds none in client-go's own kinds.
func checkOtherTyped(obj runtime.Object, other OtherKinds) Verdict {
	var gvk schema.GroupVersionKind // which typed objects seldom have set
	if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		gvk = kinds[0]
	}
	rule, found := rules[gvk]
	if !found && other != OtherKindsFullStatus {
		return Verdict{}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return Verdict{Err: err.Error()}
	}
	if found {
		return rule(content)
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(gvk)
	return checkOther(converted, other)
}

// NeedsBody reports whether Check has to see more than the metadata of a kind's objects to say anything: those of kinds with a
// rule, and those that may have a status that kstatus understands. It is false for Secrets, always.
func NeedsBody(gk schema.GroupKind, other OtherKinds) bool {
	for known := range rules {
		if known.GroupKind() == gk {
			return true
		}
	}
	if !scheme.Scheme.IsGroupRegistered(gk.Group) {
		return true
	}
	return other == OtherKindsFullStatus && hasStatus(gk)
}

// hasStatus reports whether a kind of a group of client-go's scheme has a status. One that is newer than the scheme may.
func hasStatus(gk schema.GroupKind) bool {
	versions := scheme.Scheme.VersionsForGroupKind(gk)
	for _, version := range versions {
		obj, err := scheme.Scheme.New(version.WithKind(gk.Kind))
		if err == nil && reflect.Indirect(reflect.ValueOf(obj)).FieldByName("Status").IsValid() {
			return true
		}
	}
	return len(versions) == 0
}
