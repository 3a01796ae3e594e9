package coredns

import (
	"fmt"
	"regexp"
	"strings"
)

// corefile returns the configuration of CoreDNS. Users add their own parts by the ConfigMap for custom configuration.
func corefile(values Values) string {
	var text strings.Builder
	fmt.Fprintf(&text, ".:%d {\n", portServer)
	text.WriteString("  health {\n    lameduck 15s\n  }\n")
	fmt.Fprintf(&text, "  ready :%d\n", portReady)
	text.WriteString(rewrites(values.ClusterDomain, values.CommonSuffixes))
	fmt.Fprintf(&text, "  kubernetes %s in-addr.arpa ip6.arpa {\n    pods insecure\n    fallthrough in-addr.arpa ip6.arpa\n    ttl 30\n  }\n", values.ClusterDomain)
	fmt.Fprintf(&text, "  prometheus :%d\n", portMetrics)
	text.WriteString("  loop\n  import custom/*.override\n  errors\n  log . {\n    class error\n  }\n  forward . /etc/resolv.conf\n" +
		"  cache 30\n  reload\n  loadbalance round_robin\n}\nimport custom/*.server\n")
	return text.String()
}

// rewrites returns rules for names to which a resolver has appended a search domain of Pods too early. Answers have the name that was
// asked for. The first rule is for complete names of Services, the others are for the suffixes that the Shoot names.
func rewrites(domain string, suffixes []string) string {
	service, quoted := "svc."+domain, regexp.QuoteMeta("svc."+domain)
	text := "  rewrite stop {\n" +
		`    name regex (^(?:[^\.]+\.)+)` + quoted + `\.` + quoted + ` {1}` + service + "\n" +
		`    answer name (^(?:[^\.]+\.)+)` + quoted + ` {1}` + service + "." + service + "\n  }\n"
	for _, suffix := range suffixes {
		own := regexp.QuoteMeta(suffix)
		text += "  rewrite stop {\n" +
			`    name regex (.*)\.` + own + `\.` + quoted + ` {1}.` + suffix + "\n" +
			`    answer name (.*)\.` + own + ` {1}.` + suffix + "." + service + "\n" +
			`    answer value (.*)\.` + own + ` {1}.` + suffix + "." + service + "\n  }\n"
	}
	return text
}
