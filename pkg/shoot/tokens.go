package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/clusteraccess"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

// ensureToken requests a token for the shoot's resource-manager: its first one, or a new one if it was stopped for too
// long to renew its own, or if the API server rejects it. The resource-manager requests the tokens of all other components.
// The API server must be available. The client certificate for the request is not stored.
func (p *pass) ensureToken(ctx context.Context) error {
	r, in, result := p.reconciler, p.in, p.Result
	hasToken := in.hasToken(accessSecret(resourcemanager.Account))
	if in.hibernated() || in.unknownSecrets() != "" || hasToken && !in.lockedOut(result) || !serves(result, in.key(bundleAPIServer)) {
		return nil
	}
	if err := r.recordServed(ctx, in); err != nil {
		return err
	}
	shoot, err := r.connect(in)
	if err != nil {
		return err
	}
	if hasToken {
		if accepted, err := r.acceptsToken(ctx, in, shoot); err != nil || accepted {
			return err // the resource-manager has not read its new token yet
		}
	}
	request, err := clusteraccess.RequestToken(ctx, shoot, resourcemanager.ShootRights())
	if err != nil {
		return fmt.Errorf("shoot %s: %w", in.Namespace, err)
	}
	return clusteraccess.StoreToken(ctx, r.seed, resourcemanager.ShootAccessSecret(in.Namespace), request, fieldManager, in.Now)
}

// renewTokens makes the shoot's resource-manager request all tokens again, because tokens of the old key become invalid
// when it is withdrawn. It is done when all tokens are new.
func (r *reconciler) renewTokens(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	if in.hibernated() {
		return flow.Outcome{Progress: "tokens are renewed after the shoot has woken up"}, nil
	}
	return rotation.Tokens{Uncached: r.uncached, Writer: r.seed, Namespace: in.Namespace, FieldManager: fieldManager}.Renew(ctx, task, in.Now)
}

// lockedOut reports whether the shoot's API server rejects the resource-manager: its token is invalid because its ServiceAccount
// was deleted or all data of the cluster was lost, or its rights were deleted. It cannot repair this itself. What it reports
// remains for some time after it has a new token.
func (in Inputs) lockedOut(result flow.Result) bool {
	for key, mr := range result.Live.ManagedResources {
		if key.Namespace == in.Namespace && mr.DeletionTimestamp == nil && ptr.Deref(mr.Spec.Class, "") == "" &&
			slices.ContainsFunc(mr.Status.Conditions, func(condition resourcesv1alpha1.Condition) bool { return isRejection(condition.Message) }) {
			return true
		}
	}
	return false
}

// isRejection reports whether the message of a condition shows that the API server of the shoot rejects the resource-manager.
func isRejection(message string) bool {
	const user = `"system:serviceaccount:` + metav1.NamespaceSystem + ":" + resourcemanager.Account + `" cannot `
	return strings.Contains(message, string(metav1.StatusReasonUnauthorized)) || strings.Contains(message, user)
}

// acceptsToken reports whether the API server of the shoot accepts the stored token of the resource-manager.
func (r *reconciler) acceptsToken(ctx context.Context, in Inputs, shoot client.Client) (bool, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: in.Namespace, Name: accessSecret(resourcemanager.Account)}
	if err := r.uncached.Get(ctx, key, secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	token := string(secret.Data[resourcesv1alpha1.DataKeyToken])
	if token == "" {
		return false, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := shoot.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the token of the resource-manager in shoot %s: %w", in.Namespace, err)
	}
	return review.Status.Authenticated, nil
}
