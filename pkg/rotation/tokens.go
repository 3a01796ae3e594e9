package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// TaskRenewTokens is the task that renews all tokens in access Secrets, so that a new key signs them. Its value is the name of the key.
	TaskRenewTokens = "renew-tokens"
	// annotationKeyName is the annotation with the key for which a token was requested.
	annotationKeyName = "credentials.gardener.cloud/key-name"
	// tokensAgain is how often the tokens are checked, if no watch triggers it before.
	tokensAgain = 10 * time.Second
	// tokensShown limits the number of Secrets that a message names.
	tokensShown = 5
)

// Tokens are the tokens in access Secrets of a namespace, which a resource-manager requests.
type Tokens struct {
	// Uncached reads from the API server.
	Uncached client.Reader
	Writer   client.Writer
	// Namespace of the access Secrets.
	Namespace    string
	FieldManager client.FieldOwner
}

// Renew makes the resource-manager request all tokens again, because tokens of the old key become invalid when it is withdrawn. It is done when all
// tokens are new. Tokens in other Secrets, such as static ones of ServiceAccounts, are not changed.
func (t Tokens) Renew(ctx context.Context, task flow.Task, now time.Time) (flow.Outcome, error) {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := t.Uncached.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingLabels{
		resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot,
	}); err != nil {
		return flow.Outcome{}, fmt.Errorf("list the access Secrets in namespace %s: %w", t.Namespace, err)
	}
	var old []string
	for i := range list.Items {
		secret := &list.Items[i]
		if isRenewed(secret.Annotations, task.Value, now) || secret.DeletionTimestamp != nil {
			continue
		}
		old = append(old, secret.Name)
		if secret.Annotations[annotationKeyName] == task.Value {
			continue // already requested
		}
		before := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationKeyName, task.Value)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.AnnotationTokenRenewTimestamp, now.UTC().Format(time.RFC3339))
		if err := client.IgnoreNotFound(t.Writer.Patch(ctx, secret, before, t.FieldManager)); err != nil {
			return flow.Outcome{}, fmt.Errorf("request a new token for Secret %s/%s: %w", t.Namespace, secret.Name, err)
		}
	}
	if len(old) == 0 {
		return flow.Outcome{Done: true}, nil
	}
	slices.Sort(old)
	text := fmt.Sprintf("%d tokens are being renewed: %s", len(old), strings.Join(old[:min(len(old), tokensShown)], ", "))
	return flow.Outcome{Progress: text, Again: tokensAgain}, nil
}

// isRenewed reports whether an access Secret has a token that was requested after a key became active. The request set the renewal time to its own
// time, and each new token sets a later one.
func isRenewed(annotations map[string]string, key string, now time.Time) bool {
	renewal, err := time.Parse(time.RFC3339, annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp])
	return err == nil && annotations[annotationKeyName] == key && renewal.After(now)
}
