package endpointslicehints

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// setHints sets the hints of each endpoint that has a zone to that zone.
func setHints(endpoints []discoveryv1.Endpoint) {
	for i := range endpoints {
		endpoint := &endpoints[i]
		if endpoint.Zone != nil && *endpoint.Zone != "" {
			endpoint.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *endpoint.Zone}}}
		}
	}
}
