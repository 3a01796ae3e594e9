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

// OtherKinds selects how objects are checked whose kind gardener-resource-manager has no rule for. An unknown value
// counts as OtherKindsFailuresOnly.
type OtherKinds string

const (
	// OtherKindsFailuresOnly is the default. Objects are unhealthy if kstatus reports that they failed, and healthy
	// otherwise.
	OtherKindsFailuresOnly OtherKinds = "FailuresOnly"
	// OtherKindsFullStatus also makes objects progressing while kstatus reports that they are in progress.
	OtherKindsFullStatus OtherKinds = "FullStatus"
)

// unobservedReason is the reason that kstatus gives if a status refers to an older generation.
const unobservedReason = "LatestGenerationNotObserved"

// checkOther uses kstatus, which knows the Kubernetes conventions for conditions and generations.
func checkOther(obj *unstructured.Unstructured, other OtherKinds) Verdict {
	result, err := status.Compute(obj)
	if err != nil {
		return Verdict{} // the fields have conventional names, but another meaning: no verdict
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

// checkOtherTyped checks a typed object of client-go's scheme. Programs may have added kinds with a rule to that
// scheme. With OtherKindsFailuresOnly, kinds without a rule are not converted, because kstatus finds no failures in
// client-go's own kinds.
func checkOtherTyped(obj runtime.Object, other OtherKinds) Verdict {
	var gvk schema.GroupVersionKind // typed objects usually do not have it set
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

// NeedsBody reports whether Check needs more than the metadata of a kind's objects. It is true for kinds with a rule
// and for kinds that may have a status that kstatus understands. It is always false for Secrets.
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

// hasStatus reports whether a kind in a group of client-go's scheme has a status. It assumes so for kinds that are
// newer than the scheme.
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
