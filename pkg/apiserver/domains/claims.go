// Package domains gives each domain to one Shoot, whichever API server admits it.
//
// API servers compare the domain of a Shoot with those of all others in memory. Two of them that admit two Shoots at the same moment
// do not know the other one yet. So a server first creates an object that is named after the domain, the claim, and then looks for
// claims of domains above and below it, in a state that is not older than its own claim. Of two servers that do so at the same time,
// at least one finds the claim of the other.
package domains

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// Role is the value of the label gardener.cloud/role of claims.
	Role = "shoot-domain"
	// namePrefix is followed by a hash, because a domain can be longer than a name of an object.
	namePrefix = "shoot-domain-"
	hashLength = 16
	// grace is the time for which a claim without a Shoot is that of a request that may still store it. It is longer than a request
	// can take, and allows for clocks that differ.
	grace = 2 * time.Minute
	// attempts limits how often a claim is tried again that others change at the same time.
	attempts = 5
	// releaseTimeout limits a release, which does not end with its request.
	releaseTimeout = 10 * time.Second
)

// Index finds claims by their domains, with the keys of admission.RelatedDomains.
var Index = admission.Index[*gardencorev1beta1.InternalSecret]{Name: "domain", Keys: func(claim *gardencorev1beta1.InternalSecret) []string {
	return admission.DomainKeys(claim.Annotations[constants.AnnotationDNSDomain])
}}

// Related returns the claims of a domain and of those above and below it. It knows at least all claims that were written before a
// given one, which must exist.
type Related func(ctx context.Context, claim *gardencorev1beta1.InternalSecret, domain string) ([]*gardencorev1beta1.InternalSecret, error)

// Claims are the claims of a garden.
type Claims struct {
	// Client reads and writes InternalSecrets, and reads Shoots, without a cache.
	Client client.Client
	// Related finds other claims.
	Related Related
	// MakeNamespace creates the namespace of the claims. It is called if that does not exist.
	MakeNamespace func(context.Context) error
	// Now is the current time.
	Now func() time.Time
}

// Take claims the domain of a Shoot that is about to be stored. It does nothing if the update does not change the domain; old is nil
// for a new Shoot. The function that it returns gives the domain back: call it if the Shoot was certainly not stored. Errors are those
// of the API: 403 if another Shoot has the domain or a related one, 503 if it cannot be known yet.
func (c *Claims) Take(ctx context.Context, shoot, old *gardencorev1beta1.Shoot) (func(context.Context) error, error) {
	domain := domainOf(shoot)
	if domain == "" || old != nil && domainOf(old) == domain {
		return keep, nil
	}
	claim, undo, err := c.put(ctx, shoot, domain)
	if err != nil {
		return keep, err
	}
	related, err := c.Related(ctx, claim, domain)
	for _, other := range related {
		if err == nil && !isOf(other, shoot) {
			err = c.settle(ctx, other, shoot)
		}
	}
	if err != nil {
		if failed := undo(ctx); failed != nil {
			klog.FromContext(ctx).Error(failed, "Cannot release the domain of a refused Shoot; others can claim it in some minutes", "domain", domain)
		}
		return keep, err // as it is: a joined error would be a 500
	}
	return undo, nil
}

// Release removes the claim of a Shoot that is gone.
func (c *Claims) Release(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	domain := domainOf(shoot)
	if domain == "" {
		return nil
	}
	claim, err := c.read(ctx, domain)
	if err != nil || claim == nil || !isOf(claim, shoot) {
		return err
	}
	return c.remove(ctx, claim)
}

// put creates the claim of a Shoot, and returns what undoes that. A claim that the Shoot already has, from another request, is renewed:
// it has a new revision, so that a server that considers it as abandoned does not remove it.
func (c *Claims) put(ctx context.Context, shoot *gardencorev1beta1.Shoot, domain string) (*gardencorev1beta1.InternalSecret, func(context.Context) error, error) {
	for range attempts {
		claim := c.claimOf(shoot, domain)
		err := c.Client.Create(ctx, claim)
		if err == nil {
			return claim, func(ctx context.Context) error { return c.remove(ctx, claim) }, nil
		}
		if apierrors.IsNotFound(err) {
			if err = c.MakeNamespace(ctx); err == nil {
				continue
			}
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, nil, admission.Unavailable("claim the domain %q: %v", domain, err)
		}
		found, err := c.read(ctx, domain)
		switch {
		case err != nil:
			return nil, nil, err
		case found == nil:
		case isOf(found, shoot):
			claim.ResourceVersion = found.ResourceVersion
			if err = c.Client.Update(ctx, claim); err == nil {
				return claim, keep, nil
			}
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return nil, nil, admission.Unavailable("renew the claim of the domain %q: %v", domain, err)
			}
		default:
			if err := c.settle(ctx, found, shoot); err != nil {
				return nil, nil, err
			}
		}
	}
	return nil, nil, admission.Unavailable("other requests claim the domain %q at the same time; try again", domain)
}

// settle removes the claim of another Shoot if it was abandoned. Otherwise the error refuses the Shoot.
func (c *Claims) settle(ctx context.Context, claim *gardencorev1beta1.InternalSecret, shoot *gardencorev1beta1.Shoot) error {
	domain := claim.Annotations[constants.AnnotationDNSDomain]
	key := client.ObjectKey{Namespace: claim.Labels[constants.LabelShootNamespace], Name: claim.Labels[constants.LabelShootName]}
	holder := &gardencorev1beta1.Shoot{}
	err := c.Client.Get(ctx, key, holder)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return admission.Unavailable("read the Shoot with the domain %q: %v", domain, err)
	case err == nil && key == client.ObjectKeyFromObject(shoot) && holder.UID != shoot.UID:
		return apierrors.NewAlreadyExists(gardencorev1beta1.Resource("shoots"), shoot.Name)
	case err == nil && isOf(claim, holder) && domainOf(holder) == domain:
		return apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), shoot.Name, admission.DomainTaken(domainOf(shoot)))
	case c.isFresh(claim):
		return admission.Unavailable("spec.dns.domain: another request claims the domain %q or a related one, or its Shoot was just deleted; try again", domainOf(shoot))
	}
	return c.remove(ctx, claim)
}

// isFresh reports whether the request that made a claim may still be running.
func (c *Claims) isFresh(claim *gardencorev1beta1.InternalSecret) bool {
	since, err := time.Parse(time.RFC3339, claim.Annotations[constants.AnnotationDomainClaimed])
	return err == nil && c.Now().Sub(since) < grace
}

func (c *Claims) read(ctx context.Context, domain string) (*gardencorev1beta1.InternalSecret, error) {
	claim := &gardencorev1beta1.InternalSecret{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: nameOf(domain)}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, admission.Unavailable("read the claim of the domain %q: %v", domain, err)
	}
	return claim, nil
}

// remove removes a claim unless another request has changed it. It does not end with the request that calls it.
func (c *Claims) remove(ctx context.Context, claim *gardencorev1beta1.InternalSecret) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := c.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: ptr.To(claim.ResourceVersion)})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return admission.Unavailable("release the domain %q: %v", claim.Annotations[constants.AnnotationDNSDomain], err)
	}
	return nil
}

func (c *Claims) claimOf(shoot *gardencorev1beta1.Shoot, domain string) *gardencorev1beta1.InternalSecret {
	return &gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.GardenNamespace, Name: nameOf(domain),
		Labels: map[string]string{
			constants.LabelGardenRole:     Role,
			constants.LabelShootNamespace: shoot.Namespace, constants.LabelShootName: shoot.Name,
		},
		Annotations: map[string]string{
			constants.AnnotationDNSDomain: domain, constants.AnnotationShootUID: string(shoot.UID),
			constants.AnnotationDomainClaimed: c.Now().UTC().Format(time.RFC3339),
		},
	}}
}

// isOf reports whether a claim is that of a Shoot, not of one with the same name that existed before.
func isOf(claim *gardencorev1beta1.InternalSecret, shoot *gardencorev1beta1.Shoot) bool {
	return claim.Annotations[constants.AnnotationShootUID] == string(shoot.UID)
}

func nameOf(domain string) string {
	sum := sha256.Sum256([]byte(domain))
	return namePrefix + hex.EncodeToString(sum[:hashLength])
}

func domainOf(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil {
		return ""
	}
	return ptr.Deref(shoot.Spec.DNS.Domain, "")
}

// keep undoes nothing.
func keep(context.Context) error { return nil }

// Selector selects the claims.
func Selector() string { return fmt.Sprintf("%s=%s", constants.LabelGardenRole, Role) }
