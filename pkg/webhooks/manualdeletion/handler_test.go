package manualdeletion

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// request returns the deletion, by a user, of an object with labels and optional further metadata.
func request(group, version, resource, kind, labels, more string, user authenticationv1.UserInfo) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Delete, Name: "a", Namespace: "b", UserInfo: user,
		Kind:      metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Resource:  metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
		OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"a","namespace":"b","labels":{` + labels + `}` + more + `}}`)},
	}}
}

const persisted = `"managed-by":"secrets-manager","persist":"true"`

func secret(labels, more, user string, groups ...string) admission.Request {
	return request("", "v1", "secrets", "Secret", labels, more, authenticationv1.UserInfo{Username: user, Groups: groups})
}

func TestDeletions(t *testing.T) {
	const ofFlow = `"flow.resources.gardener.cloud/name":"shoot","flow.resources.gardener.cloud/owner-uid":"1"`
	const group = "resources.gardener.cloud"
	jane := authenticationv1.UserInfo{Username: "jane", Groups: []string{"system:masters"}}
	update, subresource := secret(persisted, "", "jane"), secret(persisted, "", "jane")
	update.Operation, subresource.SubResource = admissionv1.Update, "status"
	handler := NewHandler(Options{Users: []string{"gardenlet"}, Groups: []string{"flows"}})
	for name, test := range map[string]struct {
		request admission.Request
		allowed bool
	}{
		"a Secret":                             {secret(persisted, "", "jane"), false},
		"another operation":                    {update, true},
		"a subresource":                        {subresource, true},
		"a Secret that is not persisted":       {secret(`"managed-by":"secrets-manager"`, "", "jane"), true},
		"a Secret of others":                   {secret(`"persist":"true"`, "", "jane"), true},
		"a confirmed Secret":                   {secret(persisted, `,"annotations":{"confirmation.gardener.cloud/deletion":"T"}`, "jane"), true},
		"a Secret whose confirmation is false": {secret(persisted, `,"annotations":{"confirmation.gardener.cloud/deletion":"false"}`, "jane"), false},
		"a Secret that is being deleted":       {secret(persisted, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`, "jane"), true},
		"a user who may":                       {secret(persisted, "", "gardenlet"), true},
		"a group that may":                     {secret(persisted, "", "jane", "others", "flows"), true},
		"the name of a user as a group":        {secret(persisted, "", "jane", "gardenlet"), false},
		"the name of a group as a user":        {secret(persisted, "", "flows"), false},
		"kube-controller-manager":              {secret(persisted, "", "system:kube-controller-manager"), true},
		"its controller of namespaces":         {secret(persisted, "", "system:serviceaccount:kube-system:namespace-controller"), true},
		"its garbage collector":                {secret(persisted, "", "system:serviceaccount:kube-system:generic-garbage-collector"), true},
		"another one of its controllers":       {secret(persisted, "", "system:serviceaccount:kube-system:ttl-controller"), false},
		"a ManagedResource of a flow":          {request(group, "v1alpha1", "managedresources", "ManagedResource", ofFlow, "", jane), false},
		"another ManagedResource":              {request(group, "v1alpha1", "managedresources", "ManagedResource", `"flow.resources.gardener.cloud/name":"shoot"`, "", jane), true},
		"a namespace of a shoot":               {request("", "v1", "namespaces", "Namespace", `"gardener.cloud/role":"shoot"`, "", jane), false},
		"another namespace":                    {request("", "v1", "namespaces", "Namespace", `"gardener.cloud/role":"extension"`, "", jane), true},
		"another kind":                         {request("", "v1", "configmaps", "ConfigMap", persisted+","+ofFlow, "", jane), true},
	} {
		response := handler.Handle(t.Context(), test.request)
		if response.Allowed != test.allowed || !test.allowed && response.Result.Code != http.StatusForbidden {
			t.Errorf("%s: the response is %+v", name, response)
		}
	}
}

// TestDenialSaysHowToConfirm checks that the command in the message can be run unchanged.
func TestDenialSaysHowToConfirm(t *testing.T) {
	response := NewHandler(Options{}).Handle(t.Context(), secret(persisted, "", "jane"))
	const want = "Secret b/a has a key or a certificate authority that cannot be generated again, and what it has encrypted or signed depends on it. " +
		"To delete it nevertheless, confirm that first: kubectl annotate secret a --namespace b confirmation.gardener.cloud/deletion=true"
	if response.Result.Message != want {
		t.Errorf("the message is %s", response.Result.Message)
	}
}

// TestUnreadableObject checks that the deletion of an undecodable object is refused, and that the message does not repeat the
// object.
func TestUnreadableObject(t *testing.T) {
	for _, old := range []string{"", "{", `{"metadata":{"labels":"persist"}}`} {
		deletion := secret("", "", "jane")
		deletion.OldObject.Raw = []byte(old)
		response := NewHandler(Options{}).Handle(t.Context(), deletion)
		if response.Allowed || response.Result.Code != http.StatusBadRequest || strings.Contains(response.Result.Message, "persist") {
			t.Errorf("%q: the response is %+v", old, response)
		}
	}
}

// TestLabelsAreThoseOfFlows checks that package flow sets the labels that this package reads.
func TestLabelsAreThoseOfFlows(t *testing.T) {
	if LabelFlow != flow.LabelFlow || LabelFlowOwner != flow.LabelOwner {
		t.Errorf("the labels are %s and %s, but flows set %s and %s", LabelFlow, LabelFlowOwner, flow.LabelFlow, flow.LabelOwner)
	}
}
