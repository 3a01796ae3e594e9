package seed

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// extensionParts returns a part for each extension of the Seed. An extension is deleted before the parts that it needs,
// and immediately.
func (in Inputs) extensionParts(references string) []table.Part {
	if in.Extensions == nil {
		return nil
	}
	var parts []table.Part
	for _, extension := range in.extensions() {
		parts = append(parts, table.Part{
			Name: prefixExtension + extension.Type, Needs: []table.Need{table.Applied(bundleSystem, references)}, DeletedAfter: []string{},
			Objects: func() ([]client.Object, error) { return []client.Object{in.extension(extension)}, nil },
			Adjust:  flow.ForExtension(corev1beta1.KindExtension),
		})
	}
	return parts
}

// extension returns the Extension object for an extension of the Seed. Each change of the object includes the operation
// annotation.
func (in Inputs) extension(extension corev1beta1.Extension) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: extension.Type,
			Annotations: map[string]string{constants.AnnotationGardenerOperation: constants.OperationReconcile},
		},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: extension.Type, Class: ptr.To(extensionsv1alpha1.ExtensionClassSeed), ProviderConfig: extension.ProviderConfig,
		}},
	}
}

// addExtensionWaits holds the extensions, and the DNS record, until their controllers are installed, and adds tombstones for extensions that
// the Seed no longer has.
func (in Inputs) addExtensionWaits(plan *flow.Plan) {
	wanted := map[flow.Key]bool{}
	if in.Extensions != nil {
		for _, extension := range in.extensions() {
			wanted[in.key(prefixExtension+extension.Type)] = true
		}
	}
	if in.withoutRecord() == "" {
		wanted[in.key(bundleRecord)] = true
	}
	var holds []flow.Key
	for _, key := range in.Emitted {
		switch {
		case !isExtension(key) || wanted[key]:
		case in.Extensions == nil:
			holds = append(holds, key)
		default:
			// A guard rejects the deletion of extension objects without a confirmation.
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: true})
		}
	}
	if in.Extensions == nil {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "extensions-known", Reason: "the extensions of the garden are not known", Holds: holds, Deadline: in.deadline(),
		})
		return
	}
	missing := in.missingExtensions()
	if len(missing) == 0 {
		return
	}
	for key := range wanted {
		holds = append(holds, key)
	}
	slices.SortFunc(holds, flow.Key.Compare)
	plan.Waits = append(plan.Waits, flow.Wait{
		Name: "required-extensions", Reason: fmt.Sprintf("required extensions are not ready: %s", strings.Join(missing, ", ")),
		Holds: holds, Deadline: in.deadline(),
	})
}

func isExtension(key flow.Key) bool { return strings.HasPrefix(key.Name, prefixExtension) }
