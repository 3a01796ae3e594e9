package tokenrequestor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// maxBundle is the maximum size of a CA bundle file in bytes.
const maxBundle = 1 << 20

// pass is one reconcile of a source Secret.
type pass struct {
	*Reconciler
	name   types.NamespacedName
	source *corev1.Secret
	spec   tokenSpec
	// bundle is the CA bundle of the target cluster; nil if it is not requested or not configured.
	bundle []byte
	// target is the Secret of the target cluster; nil if it does not exist or is not requested.
	target  *corev1.Secret
	content contents
	// expires is when the token expires, by the clock of the API server; zero if that is not known.
	expires time.Time
}

// reconcile reconciles a source Secret and returns the delay until the next reconcile.
func (r *Reconciler) reconcile(ctx context.Context, meta *metav1.PartialObjectMetadata) (time.Duration, error) {
	p := &pass{Reconciler: r, name: client.ObjectKeyFromObject(meta), source: &corev1.Secret{}}
	err := r.Direct.Get(ctx, p.name, p.source)
	if apierrors.IsNotFound(err) || err == nil && !r.isSource(p.source) {
		return 0, errGone
	}
	if err != nil {
		return 0, fmt.Errorf("read Secret %s of the source cluster: %w", p.name, err)
	}
	if known := r.restOf(&metav1.PartialObjectMetadata{ObjectMeta: p.source.ObjectMeta}); known > 0 {
		return known, nil // the event came from an outdated cache
	}
	if err := p.prepare(ctx); err != nil {
		return 0, err
	}
	if err := p.cleanUpFormer(ctx); err != nil {
		return 0, err
	}
	account, created, err := p.ensure(ctx)
	if err != nil {
		return 0, err
	}
	reason, next, err := p.reason(ctx, account, created)
	if err != nil {
		return 0, err
	}
	if reason != reasonNone {
		return p.renew(ctx, reason)
	}
	return p.rest(ctx, next)
}

// prepare reads the requested and the current state.
func (p *pass) prepare(ctx context.Context) (err error) {
	if p.spec, err = p.Options.readTokenSpec(p.source.Annotations); err != nil {
		return lasting(failureAnnotations, err)
	}
	if err := p.checkNamespaces(); err != nil {
		return lasting(failureNamespace, err)
	}
	if p.spec.bundle {
		if p.bundle, err = readBundle(p.Target.CAData, p.Target.CAFile); err != nil {
			return fmt.Errorf("read the CA bundle of the target cluster: %w", err)
		}
	}
	carrier := p.source
	if p.spec.synced() {
		if err := p.readTarget(ctx); err != nil {
			return err
		}
		if carrier = p.target; carrier == nil {
			return nil
		}
	}
	if p.content, err = readContents(carrier.Data); err != nil {
		return lasting(failureKubeconfig, err)
	}
	if own, ok := readClaims(p.content.token()); ok {
		p.expires = own.expires
	}
	p.memories.update(p.name, func(m *memory) { m.expires = p.expires }) // even if the token cannot be renewed
	return nil
}

func (p *pass) checkNamespaces() error {
	const text = "the annotation %s names %q, but the configuration of the token requestor allows only %q"
	var errs []error
	if allowed := p.Options.AccountNamespaces; len(allowed) > 0 && !slices.Contains(allowed, p.spec.account.Namespace) {
		errs = append(errs, fmt.Errorf(text, resourcesv1alpha1.AnnotationServiceAccountNamespace, p.spec.account.Namespace, allowed))
	}
	if allowed := p.Options.TargetNamespaces; p.spec.synced() && len(allowed) > 0 && !slices.Contains(allowed, p.spec.target.Namespace) {
		errs = append(errs, fmt.Errorf(text, resourcesv1alpha1.AnnotationTokenTargetNamespace, p.spec.target.Namespace, allowed))
	}
	return errors.Join(errs...)
}

// readBundle returns the CA bundle from the given data or file; nil if neither is set. The file is read at each call.
func readBundle(data []byte, path string) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is read only
	bundle, err := io.ReadAll(io.LimitReader(file, maxBundle+1))
	if err == nil && len(bundle) > maxBundle {
		err = fmt.Errorf("%s is larger than the %d bytes allowed", path, maxBundle)
	}
	return bundle, err
}

// readTarget reads the Secret of the target cluster.
func (p *pass) readTarget(ctx context.Context) error {
	target, err := p.Core.Secrets(p.spec.target.Namespace).Get(ctx, p.spec.target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return requestError(err, "read Secret %s of the target cluster", p.spec.target)
	}
	if target.UID == p.source.UID {
		return lasting(failureTarget, fmt.Errorf("the annotations %s and %s name the Secret itself: remove them, or name another one",
			resourcesv1alpha1.AnnotationTokenTargetNamespace, resourcesv1alpha1.AnnotationTokenTargetName))
	}
	p.target = target
	return nil
}

// ensure applies the ServiceAccount and returns its UID and whether it created it.
func (p *pass) ensure(ctx context.Context) (uid types.UID, created bool, err error) {
	p.objects.RLock()
	defer p.objects.RUnlock()
	p.hold(object{kindServiceAccount, p.spec.account})
	if p.spec.synced() {
		p.hold(object{kindSecret, p.spec.target})
	}
	// Changes of the ServiceAccount from here on trigger another reconcile.
	p.memories.update(p.name, func(m *memory) { m.account, m.accountUID, m.recheck = p.spec.account, "", false })
	uid, created, err = p.ensureAccount(ctx, p.spec, p.name)
	p.memories.update(p.name, func(m *memory) { m.accountUID = uid })
	return uid, created, err
}

// reason returns the reason why a new token must be requested now. Otherwise, next is the time of the renewal, by the
// clock of the API server. A token that is not due is reviewed after startup, at a resync, and after another client
// changed the Secret.
func (p *pass) reason(ctx context.Context, account types.UID, accountCreated bool) (reason string, next time.Time, err error) {
	token := p.content.token()
	reason, next = reasonToRenew(condition{
		timestamp:      p.source.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp],
		targetMissing:  p.spec.synced() && p.target == nil,
		token:          token,
		bundleDiffers:  p.spec.bundle && !p.content.hasBundle(p.bundle) && (len(p.bundle) > 0 || p.content.kubeconfig == nil),
		account:        account,
		accountCreated: accountCreated,
	}, p.ServerClock.Now())
	if reason != reasonNone {
		return reason, next, nil
	}
	accepted, err := p.review(ctx, token)
	if err != nil || accepted {
		return reasonNone, next, err
	}
	requested := p.memories.update(p.name, func(*memory) {}).requested
	wait := untilReplaced(requested, p.Clock.Now())
	if wait == 0 {
		return reasonRejected, time.Time{}, nil
	}
	return reasonNone, next, &problemError{reason: failureRejected, again: min(p.waitUntil(next), wait), err: fmt.Errorf(
		"the API server of the target cluster rejects the token that it issued for ServiceAccount %s: "+
			"check its authentication webhooks and settings", p.spec.account)}
}

// review asks the API server whether it accepts a token. Without permission to do so, it returns true.
func (p *pass) review(ctx context.Context, token string) (bool, error) {
	review, err := p.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		log.FromContext(ctx).Info("Not allowed to create tokenreviews in the target cluster: rejected tokens are not detected")
		return true, nil
	}
	if err != nil {
		return false, requestError(err, "review the token of ServiceAccount %s in the target cluster", p.spec.account)
	}
	return review.Status.Authenticated, nil
}

// rest returns how soon the token is due. It updates the marks of the Secret in the target cluster.
func (p *pass) rest(ctx context.Context, next time.Time) (time.Duration, error) {
	if p.spec.synced() {
		if err := p.writeTarget(ctx, nil); err != nil {
			return 0, err
		}
	}
	return p.settle(p.waitUntil(next)), nil
}

// waitUntil returns how long it is until a time by the clock of the API server, and at least shortestWait to avoid a
// busy loop.
func (p *pass) waitUntil(next time.Time) time.Duration {
	return max(next.Sub(p.ServerClock.Now()), shortestWait)
}

// settle records that a source Secret needs no reconcile for a while.
func (p *pass) settle(wait time.Duration) time.Duration {
	wait = max(wait, shortestWait)
	p.memories.update(p.name, func(m *memory) {
		m.version, m.next, m.expires = p.source.ResourceVersion, p.Clock.Now().Add(wait), p.expires
	})
	return wait
}

// fill writes a token to the Secret of the target cluster, if one is requested.
func (p *pass) fill(ctx context.Context, token string) error {
	if !p.spec.synced() {
		return nil
	}
	changed, err := p.content.fill(token, p.bundle)
	if err != nil {
		return lasting(failureKubeconfig, err)
	}
	return p.writeTarget(ctx, changed)
}

// sourceChanges returns the changes of the data of the source Secret.
func (p *pass) sourceChanges(token string) (changes, error) {
	if p.spec.synced() {
		return withdraw(p.source.Data)
	}
	return p.content.fill(token, p.bundle)
}

// encodeChanges returns a merge patch of an object with a resourceVersion.
func encodeChanges(resourceVersion string, annotations, labels map[string]any, data changes) ([]byte, error) {
	meta := map[string]any{"resourceVersion": resourceVersion}
	for part, values := range map[string]map[string]any{"annotations": annotations, "labels": labels} {
		if len(values) > 0 {
			meta[part] = values
		}
	}
	body := map[string]any{"metadata": meta}
	if len(data) > 0 {
		body["data"] = data
	}
	return json.Marshal(body)
}
