package flow

import (
	"regexp"
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// invalid matches errors with which an API server rejects the content of an object.
var invalid = regexp.MustCompile(`(?i)(\bis invalid\b|invalid configuration)`)

// patterns maps the text of an infrastructure error to a code, as Gardener's extensions do.
var patterns = []struct {
	code    corev1beta1.ErrorCode
	pattern *regexp.Regexp
}{
	{corev1beta1.ErrorInfraUnauthenticated, regexp.MustCompile(
		`(?i)(InvalidAuthenticationToken|InvalidClientTokenId|AuthFailure|invalid_client|invalid client|invalid token|` +
			`invalid credentials|expired (token|credentials)|ExpiredToken|authentication failed|SignatureDoesNotMatch|\b401\b)`)},
	{corev1beta1.ErrorInfraUnauthorized, regexp.MustCompile(
		`(?i)(Unauthorized|AccessDenied|access denied|not authorized|AuthorizationFailed|\b403\b)`)},
	{corev1beta1.ErrorInfraQuotaExceeded, regexp.MustCompile(
		`(?i)(LimitExceeded|quota exceeded|exceeded quota|quota (has been )?met|QuotaExceeded)`)},
	{corev1beta1.ErrorInfraRateLimitsExceeded, regexp.MustCompile(`(?i)(Throttling|too many requests)`)},
	{corev1beta1.ErrorInfraDependencies, regexp.MustCompile(
		`(?i)(PendingVerification|pending verification|DependencyViolation|dependency violation|resource in use|InUseBy|` +
			`not registered)`)},
	{corev1beta1.ErrorInfraResourcesDepleted, regexp.MustCompile(
		`(?i)(out of (capacity|stock)|OutOfStock|insufficient (resources|capacity)|ZoneResourcePoolExhausted)`)},
	{corev1beta1.ErrorConfigurationProblem, invalid},
}

// final are the codes of errors that a retry does not fix. Rate limits are not among them: they pass.
var final = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorProblematicWebhook,
}

// throttled is the only limit that is not a quota.
var throttled = regexp.MustCompile(`(?i)RequestLimitExceeded`)

// namedCodes matches error codes in a text: see [ExtensionHealth].
var namedCodes = regexp.MustCompile(`\bERR_[A-Z]+(_[A-Z]+)*\b`)

// CodesIn returns the codes of an infrastructure error by its text, in a fixed order. Codes that the text contains
// literally take precedence.
func CodesIn(text string) []corev1beta1.ErrorCode {
	if named := codesNamedIn(text); len(named) > 0 {
		return named
	}
	text = throttled.ReplaceAllLiteralString(text, "Throttling")
	var codes []corev1beta1.ErrorCode
	for _, known := range patterns {
		if known.pattern.MatchString(text) {
			codes = append(codes, known.code)
		}
	}
	return codes
}

// codesNamedIn returns the codes that a text contains literally, in a fixed order.
func codesNamedIn(text string) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	for _, code := range namedCodes.FindAllString(text, -1) {
		codes = append(codes, corev1beta1.ErrorCode(code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// CodesOfWrite returns the codes of a failed write of an object. Only codes in the text and errors about invalid
// content count. An API server also answers Unauthorized, Forbidden and Too Many Requests, but these concern the flow
// or the resource-manager, not the infrastructure.
func CodesOfWrite(text string) []corev1beta1.ErrorCode {
	codes := codesNamedIn(text)
	if len(codes) == 0 && invalid.MatchString(text) {
		codes = append(codes, corev1beta1.ErrorConfigurationProblem)
	}
	return codes
}

// codesOf returns the codes of the failure that a ManagedResource reports. Codes in its conditions take precedence. The
// message about an unhealthy object can contain arbitrary text, such as a probe that failed with status code 403.
// Therefore only codes that the message contains literally count.
func codesOf(mr *resourcesv1alpha1.ManagedResource) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	for _, condition := range mr.Status.Conditions {
		for _, code := range condition.Codes {
			codes = append(codes, corev1beta1.ErrorCode(code))
		}
	}
	switch applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); {
	case len(codes) > 0:
	case applied.Status == resourcesv1alpha1.ConditionFalse:
		codes = CodesOfWrite(failing(mr))
	default:
		codes = codesNamedIn(failing(mr))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func hasFinal(errs []corev1beta1.LastError) bool {
	return slices.ContainsFunc(errs, func(err corev1beta1.LastError) bool {
		return slices.ContainsFunc(err.Codes, func(code corev1beta1.ErrorCode) bool { return slices.Contains(final, code) })
	})
}
