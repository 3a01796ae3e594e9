package seed

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// extensions acts as the controllers of extensions until the test ends: it completes each operation at once.
func (w *world) extensions() {
	w.Helper()
	of := extensionsv1alpha1.SchemeGroupVersion
	kit.Answer(w, w.seed, w.answer, of.WithKind("Extension"), of.WithKind("DNSRecord"), of.WithKind("BackupBucket"), of.WithKind("BackupEntry"))
}

// answer completes the operation of an extension object. It first writes the status, and then removes the operation
// if it is still the same. If a step fails, the operation stays and is executed again, so no operation is lost.
func (w *world) answer(ctx context.Context, object *unstructured.Unstructured) {
	asked := operationOf(object)
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	switch {
	case asked.operation == constants.OperationWaitForState:
		return // controllers of extensions ignore it
	case asked.operation == "" && observed == object.GetGeneration():
		return
	}
	patch, err := json.Marshal(map[string]any{"status": w.statusOf(ctx, object, asked.operation)})
	if err != nil || w.seed.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)) != nil {
		return
	}
	if asked.operation == "" || operationOf(object) != asked {
		return
	}
	annotations := object.GetAnnotations()
	delete(annotations, constants.AnnotationGardenerOperation)
	object.SetAnnotations(annotations)
	_ = w.seed.Update(ctx, object) // after a conflict, the newer object is answered
}

// operation is the requested operation of an extension object, and the time of the request.
type operation struct{ operation, at string }

func operationOf(object client.Object) operation {
	annotations := object.GetAnnotations()
	return operation{annotations[constants.AnnotationGardenerOperation], annotations[constants.AnnotationGardenerTimestamp]}
}

// statusOf returns the status after an operation.
func (w *world) statusOf(ctx context.Context, object client.Object, operation string) map[string]any {
	kind := corev1beta1.LastOperationTypeReconcile
	switch operation {
	case constants.OperationMigrate:
		kind = corev1beta1.LastOperationTypeMigrate
	case constants.OperationRestore:
		kind = corev1beta1.LastOperationTypeRestore
	}
	status := map[string]any{
		"observedGeneration": object.GetGeneration(), "providerStatus": map[string]any{"made": "by the test"},
		"lastOperation": map[string]any{
			"state": "Succeeded", "type": string(kind), "progress": int64(100), "description": "done", "lastUpdateTime": metav1.Now().UTC().Format(time.RFC3339),
		},
	}
	if object.GetObjectKind().GroupVersionKind().Kind == "BackupBucket" {
		generated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "made-" + object.GetName()}, Data: map[string][]byte{"user": []byte("generated")}}
		_ = w.seed.Create(ctx, generated) // it may already exist
		status["generatedSecretRef"] = map[string]any{"namespace": generated.Namespace, "name": generated.Name}
	}
	return status
}
