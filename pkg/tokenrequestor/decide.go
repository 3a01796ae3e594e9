package tokenrequestor

import (
	"time"
)

const (
	// longestUse is after which time a token counts as used up, however long it is valid (the concept document, "TokenRequestor").
	longestUse = 24 * time.Hour
	// renewalShare is the share of a lifetime after which a token is renewed.
	renewalShare = 0.8
	// renewalJitter is by which part of that time renewals are spread.
	renewalJitter = 0.05
	// lastShare is the share of a token's lifetime after which it is renewed whatever the annotation says: somebody else, or a
	// replica with another clock, may have written it.
	lastShare = 0.9
	// shortestWait keeps an API server that issues tokens for seconds from being asked all the time.
	shortestWait = time.Minute
	// trial is how long a new token is not replaced although the API server rejects it: the next one would be rejected too.
	trial = 10 * time.Minute
)

// Why a token is requested; the values of a label of metrics.
const (
	reasonNone           = ""
	reasonNoTimestamp    = "NoTimestamp"
	reasonTargetMissing  = "TargetMissing"
	reasonNoToken        = "NoToken"
	reasonBundleChanged  = "BundleChanged"
	reasonAccountCreated = "ServiceAccountCreated"
	reasonDue            = "Due"
	reasonRejected       = "Rejected"
)

// condition is what is known of the present token.
type condition struct {
	// timestamp is the annotation that says when to renew it.
	timestamp string
	// targetMissing is set if a Secret of the target cluster is to hold it, and does not exist.
	targetMissing bool
	token         string
	// bundleDiffers is set if the CA bundle beside it is wanted and another one.
	bundleDiffers bool
	// accountCreated is set if the ServiceAccount has just been created: tokens of one before are not valid.
	accountCreated bool
}

// reasonToRenew says why a new token has to be requested now, by the clock of the API server. Next is when it has to be, if that
// is not now. An unreadable timestamp counts as none.
func reasonToRenew(c condition, now time.Time) (reason string, next time.Time) {
	renew, err := time.Parse(time.RFC3339, c.timestamp)
	if own, ok := readClaims(c.token); ok {
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
	case !now.Before(renew):
		return reasonDue, time.Time{}
	}
	return reasonNone, renew
}

// renewalAfter returns after which time a token is renewed that is valid for a lifetime from now on. Random is in [0, 1).
func renewalAfter(lifetime time.Duration, random float64) time.Duration {
	used := renewalShare * float64(min(lifetime, longestUse))
	return time.Duration(used * (1 + renewalJitter*random))
}

// mayReplaceRejected tells whether a token that the API server rejects is replaced, if the last one was requested at a time by the
// same clock; zero if none was.
func mayReplaceRejected(requested, now time.Time) bool {
	return requested.IsZero() || now.Sub(requested) >= trial
}
