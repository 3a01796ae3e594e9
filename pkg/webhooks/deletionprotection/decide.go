package deletionprotection

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

const (
	// AnnotationConfirmation confirms the deletion of an object if its value is true (1, t, T, true, TRUE or True).
	AnnotationConfirmation = "confirmation.gardener.cloud/deletion"
	// LabelDeletionProtected with the value "true" protects a CustomResourceDefinition.
	LabelDeletionProtected = "gardener.cloud/deletion-protected"
)

// maxNamed is the maximum number of objects of a collection that a refusal names.
const maxNamed = 10

// protected are the resources whose deletion must be confirmed, by group and version. The webhook of
// gardener-resource-manager is also called for bastions, but allows their deletion.
var protected = map[metav1.GroupVersion][]string{
	{Group: "apiextensions.k8s.io", Version: "v1"}:       {definitions},
	{Group: "apiextensions.k8s.io", Version: "v1beta1"}:  {definitions},
	{Group: "druid.gardener.cloud", Version: "v1alpha1"}: {"etcds"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1"}: {
		"backupbuckets", "backupentries", "containerruntimes", "controlplanes", "dnsrecords", "extensions", "infrastructures",
		"networks", "operatingsystemconfigs", "selfhostedshootexposures", "workers",
	},
}

const definitions = "customresourcedefinitions"

// isProtected reports whether deletions of a request's resource must be confirmed.
func isProtected(request *admission.Request) bool {
	resource := request.Resource
	return slices.Contains(protected[metav1.GroupVersion{Group: resource.Group, Version: resource.Version}], resource.Resource)
}

func isDefinition(request *admission.Request) bool { return request.Resource.Resource == definitions }

// IsConfirmed reports whether the annotation AnnotationConfirmation of an object is true.
func IsConfirmed(object *metav1.PartialObjectMetadata) bool {
	confirmed, err := strconv.ParseBool(object.Annotations[AnnotationConfirmation])
	return err == nil && confirmed
}

// unconfirmed returns the objects whose deletion is not confirmed. Objects that are already being deleted need no
// confirmation.
func unconfirmed(objects []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	return slices.DeleteFunc(objects, func(object metav1.PartialObjectMetadata) bool {
		return IsConfirmed(&object) || object.DeletionTimestamp != nil
	})
}

// refusal returns the error about unconfirmed objects, or nil if there are none. The message is that of
// gardener-resource-manager. For a collection, it also lists the objects.
func refusal(request *admission.Request, objects []metav1.PartialObjectMetadata) error {
	if isDefinition(request) {
		// The object selector of the webhook has the same condition. Without it, all CustomResourceDefinitions of the cluster
		// would have to be confirmed.
		objects = slices.DeleteFunc(objects, func(object metav1.PartialObjectMetadata) bool {
			return object.Labels[LabelDeletionProtected] != "true"
		})
	}
	if len(objects) == 0 {
		return nil
	}
	text := fmt.Sprintf("must have a %q annotation to delete", AnnotationConfirmation)
	if request.Name == "" {
		text += ": " + request.Kind.Kind + " " + names(objects)
	}
	return admit.Refuse(http.StatusForbidden, "%s", text)
}

// names returns the first maxNamed names in alphabetical order, and the number of further ones.
func names(objects []metav1.PartialObjectMetadata) string {
	all := make([]string, 0, len(objects))
	for i := range objects {
		all = append(all, strconv.Quote(objects[i].Name))
	}
	slices.Sort(all)
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
