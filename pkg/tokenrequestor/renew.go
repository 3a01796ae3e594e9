package tokenrequestor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// renew requests a token, writes it, and returns how soon the next one is due.
func (p *pass) renew(ctx context.Context, reason string) (time.Duration, error) {
	token, lifetime, err := p.request(ctx)
	if err != nil {
		return 0, err
	}
	wait := renewalAfter(lifetime, p.Random())
	renewal := p.ServerClock.Now().Add(wait).UTC().Format(time.RFC3339)
	p.memories.update(p.name, func(m *memory) { m.requested = p.Clock.Now() })
	// The token is written before the timestamp. If only the token is written, the next reconcile requests another one.
	if err := p.fill(ctx, token); err != nil {
		return 0, err
	}
	changed, err := p.sourceChanges(token)
	if err != nil {
		return 0, lasting(failureKubeconfig, err)
	}
	if err := p.patchSource(ctx, map[string]any{resourcesv1alpha1.AnnotationTokenRenewTimestamp: renewal}, changed); err != nil {
		return 0, err
	}
	p.Metrics.renewed(reason)
	log.FromContext(ctx).Info("Requested a token", "reason", reason, "serviceAccount", p.spec.account.String(), "renewal", renewal)
	return p.settle(wait), nil
}

// request returns a new token and its remaining lifetime.
func (p *pass) request(ctx context.Context) (string, time.Duration, error) {
	answer, err := p.Core.ServiceAccounts(p.spec.account.Namespace).CreateToken(ctx, p.spec.account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{audience}, ExpirationSeconds: ptr.To(int64(p.spec.lifetime / time.Second)),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", 0, requestError(err, "request a token of ServiceAccount %s of the target cluster", p.spec.account)
	}
	status := answer.Status
	if status.Token == "" {
		return "", 0, errors.New("the API server of the target cluster answered the token request without a token")
	}
	p.expires = status.ExpirationTimestamp.Time
	lifetime := p.expires.Sub(p.ServerClock.Now())
	if own, ok := readClaims(status.Token); ok {
		// Both times are from the clock of the API server, so clock skew does not affect the difference.
		lifetime = p.expires.Sub(own.issued)
	}
	if lifetime <= 0 {
		return "", 0, fmt.Errorf("the token that the API server of the target cluster issued for ServiceAccount %s has already expired",
			p.spec.account)
	}
	return status.Token, lifetime, nil
}

// patchSource changes the source Secret if it has not changed since it was read. The response contains only metadata.
func (p *pass) patchSource(ctx context.Context, annotations map[string]any, changed changes) error {
	body, err := encodeChanges(p.source.ResourceVersion, annotations, nil, changed)
	if err != nil {
		return fmt.Errorf("encode the patch of Secret %s", p.name)
	}
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.name.Namespace, Name: p.name.Name}}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err = p.Source.Patch(ctx, meta, client.RawPatch(types.MergePatchType, body), client.FieldOwner(resourcesv1alpha1.TokenFieldManager))
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return requestError(err, "write Secret %s of the source cluster", p.name)
	}
	p.source.ResourceVersion = meta.ResourceVersion
	return nil
}

// writeTarget creates or updates the Secret of the target cluster. It preserves other data.
func (p *pass) writeTarget(ctx context.Context, changed changes) error {
	p.objects.RLock()
	defer p.objects.RUnlock()
	secrets := p.Core.Secrets(p.spec.target.Namespace)
	if p.target == nil {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.spec.target.Namespace, Name: p.spec.target.Name},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{},
		}
		maps.Copy(secret.Data, changed)
		maps.DeleteFunc(secret.Data, func(_ string, value []byte) bool { return value == nil })
		if p.Options.CleanUp {
			secret.Labels = map[string]string{resourcesv1alpha1.LabelTokenRequestor: p.mark()}
			secret.Annotations = map[string]string{resourcesv1alpha1.AnnotationTokenSource: p.name.String()}
		}
		_, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: resourcesv1alpha1.TokenFieldManager})
		return requestError(err, "create Secret %s of the target cluster (its namespace must exist)", p.spec.target)
	}
	labels, annotations := p.markChanges(p.target)
	if len(changed) == 0 && len(labels) == 0 && len(annotations) == 0 {
		return nil
	}
	body, err := encodeChanges(p.target.ResourceVersion, annotations, labels, changed)
	if err != nil {
		return fmt.Errorf("encode the patch of Secret %s", p.spec.target)
	}
	_, err = secrets.Patch(ctx, p.spec.target.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: resourcesv1alpha1.TokenFieldManager})
	return requestError(err, "write Secret %s of the target cluster", p.spec.target)
}

const (
	// longestUse limits the age of a token, regardless of its validity (the concept document, "TokenRequestor").
	longestUse = 24 * time.Hour
	// renewalShare is the fraction of a lifetime after which a token is renewed.
	renewalShare = 0.8
	// renewalJitter is the fraction of that time by which renewals are spread.
	renewalJitter = 0.05
	// lastShare is the fraction of a token's lifetime after which it is renewed regardless of the annotation, which
	// another client, or a replica with a different clock, may have written.
	lastShare = 0.9
	// shortestWait limits the rate of requests to an API server that issues tokens for only seconds.
	shortestWait = time.Minute
	// trial is how long a rejected new token is not replaced. The API server would probably reject the next one as well.
	trial = 10 * time.Minute
)

// Reasons for token requests. They are values of a metric label.
const (
	reasonNone            = ""
	reasonNoTimestamp     = "NoTimestamp"
	reasonTargetMissing   = "TargetMissing"
	reasonNoToken         = "NoToken"
	reasonBundleChanged   = "BundleChanged"
	reasonAccountCreated  = "ServiceAccountCreated"
	reasonAccountReplaced = "ServiceAccountReplaced"
	reasonDue             = "Due"
	reasonRejected        = "Rejected"
)

// condition is the known state of the current token.
type condition struct {
	// timestamp is the annotation with the renewal time.
	timestamp string
	// targetMissing is set if the Secret of the target cluster that should contain it does not exist.
	targetMissing bool
	token         string
	// bundleDiffers is set if a CA bundle is requested and the stored one differs.
	bundleDiffers bool
	// account is the UID of the ServiceAccount.
	account types.UID
	// accountCreated is set if the ServiceAccount has just been created. Tokens of a previous one are not valid.
	accountCreated bool
}

// reasonToRenew returns the reason why a new token must be requested now, by the clock of the API server. Otherwise,
// next is the renewal time. An invalid timestamp is treated as missing.
func reasonToRenew(c condition, now time.Time) (reason string, next time.Time) {
	replaced := false
	renew, err := time.Parse(time.RFC3339, c.timestamp)
	if own, ok := readClaims(c.token); ok {
		replaced = own.account != "" && c.account != "" && own.account != c.account
		if last := own.issued.Add(time.Duration(lastShare * float64(own.lifetime()))); last.Before(renew) {
			renew = last
		}
	}
	switch {
	case err != nil:
		return reasonNoTimestamp, time.Time{}
	case c.targetMissing:
		return reasonTargetMissing, time.Time{}
	case c.token == "":
		return reasonNoToken, time.Time{}
	case c.bundleDiffers:
		return reasonBundleChanged, time.Time{}
	case c.accountCreated:
		return reasonAccountCreated, time.Time{}
	case replaced:
		return reasonAccountReplaced, time.Time{}
	case !now.Before(renew):
		return reasonDue, time.Time{}
	}
	return reasonNone, renew
}

// renewalAfter returns the time until the renewal of a new token with the given lifetime. Random is in [0, 1).
func renewalAfter(lifetime time.Duration, random float64) time.Duration {
	used := renewalShare * float64(min(lifetime, longestUse))
	return time.Duration(used * (1 + renewalJitter*random))
}

// untilReplaced returns how long a rejected token is not replaced. Requested is the time of the last request by the same clock; zero
// if there was none.
func untilReplaced(requested, now time.Time) time.Duration {
	return max(trial-now.Sub(requested), 0)
}
