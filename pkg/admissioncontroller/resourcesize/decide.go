// Package resourcesize limits the size and number of objects that users write to the garden. Programs watch these objects, so
// large ones, such as Shoots with large annotations, would exhaust their memory.
package resourcesize

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
)

// all matches every group, version, resource or name.
const all = "*"

// limitFor returns the first limit that matches a request, or nil.
func limitFor(limits []v1alpha1.ResourceLimit, request *admissionv1.AdmissionRequest) *v1alpha1.ResourceLimit {
	asked := request.RequestResource
	if asked == nil {
		asked = &request.Resource
	}
	has := func(values []string, value string) bool {
		return slices.Contains(values, all) || slices.Contains(values, value)
	}
	for i, limit := range limits {
		if has(limit.APIGroups, asked.Group) && has(limit.APIVersions, asked.Version) && has(limit.Resources, asked.Resource) {
			return &limits[i]
		}
	}
	return nil
}

// unrestricted reports whether a user has no limits.
func unrestricted(subjects []rbacv1.Subject, user authenticationv1.UserInfo) bool {
	namespace, account, err := serviceaccount.SplitUsername(user.Username)
	isAccount := err == nil
	return slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			return isAccount && subject.Namespace == namespace && (subject.Name == all || subject.Name == account)
		case rbacv1.UserKind:
			return !isAccount && (subject.Name == all || subject.Name == user.Username)
		case rbacv1.GroupKind:
			return !isAccount && (subject.Name == all || slices.Contains(user.Groups, subject.Name))
		}
		return false
	})
}

// sizeOf returns the number of bytes of an object as JSON, without its status and managedFields, which users do not write.
func sizeOf(raw []byte) (int64, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return 0, fmt.Errorf("decode the object: %w", err)
	}
	delete(object, "status")
	if metadata, is := object["metadata"].(map[string]any); is {
		delete(metadata, "managedFields")
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return 0, fmt.Errorf("encode the object: %w", err)
	}
	return int64(len(encoded)), nil
}

// tooLarge returns why an object exceeds the size of a limit, or an empty string.
func tooLarge(limit *v1alpha1.ResourceLimit, raw []byte) (string, error) {
	if limit.Size == nil || len(raw) == 0 {
		return "", nil
	}
	size, err := sizeOf(raw)
	if err != nil || size <= limit.Size.Value() {
		return "", err
	}
	return fmt.Sprintf("the object has %d bytes without its status and managedFields, more than the %s that are allowed: make it smaller",
		size, limit.Size), nil
}

// counted reports whether a request adds an object that the count of a limit restricts: one without a namespace.
func counted(limit *v1alpha1.ResourceLimit, request *admissionv1.AdmissionRequest) bool {
	return limit.Count != nil && request.Operation == admissionv1.Create && request.Namespace == "" && request.SubResource == ""
}

// subject names the object of a request for messages and logs.
func subject(request *admissionv1.AdmissionRequest) string {
	return strings.TrimPrefix(request.Namespace+"/"+request.Name, "/")
}
