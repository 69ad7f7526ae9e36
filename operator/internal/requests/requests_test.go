package requests_test

import (
	"net/http/httptest"
	"testing"

	"github.com/operatorkit/operatorkit/operator/internal/requests"
)

func TestWhichRequestsMayChangeSomething(t *testing.T) {
	for request, want := range map[[2]string]bool{
		{"GET", "/api/v1/namespaces/shop/pods/web-0"}:                          false,
		{"HEAD", "/containers/json"}:                                           false,
		{"OPTIONS", "/"}:                                                       false,
		{"POST", "/api/v1/namespaces/shop/configmaps"}:                         true,
		{"POST", "/containers/create"}:                                         true,
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All"}:  false,
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=None"}: true,
		{"DELETE", "/api/v1/namespaces/shop"}:                                  true,
		{"PUT", "/api/v1/namespaces/shop/status"}:                              true,
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}:     false,
		{"POST", "/proxied/apis/authentication.k8s.io/v1/tokenreviews"}:        false,
		{"POST", "/api/v1/namespaces/shop/serviceaccounts/default/token"}:      false,
		{"POST", "/api/v1/namespaces/shop/pods/web-0/exec?command=rm"}:         true,
		{"POST", "/api/v1/namespaces/shop/pods/web-0/exec?dryRun=All"}:         true,
		{"GET", "/api/v1/namespaces/shop/pods/web-0/exec?command=rm"}:          true,
		{"GET", "/api/v1/namespaces/shop/pods/web-0/attach?stdin=true"}:        true,
		{"GET", "/api/v1/namespaces/shop/pods/web-0/portforward?ports=80"}:     true,
		{"GET", "/api/v1/namespaces/shop/pods/web-0/log?follow=true"}:          false,
		{"GET", "/apis/example.com/v1/namespaces/shop/pods/web-0/exec"}:        false,
		{"GET", "/api/v1/namespaces/shop/services/web/proxy/orders"}:           false,
		{"POST", "/api/v1/namespaces/shop/services/web/proxy/orders"}:          true,
		{"DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/gardener"}: true,
		{"POST", "/other/authentication.k8s.io/things"}:                        true,
	} {
		r := httptest.NewRequest(request[0], request[1], nil)
		if got := requests.Writes(r); got != want {
			t.Errorf("%s %s: %t, want %t", request[0], request[1], got, want)
		}
	}
}

func TestRequestsForAnotherProtocolMayChangeSomething(t *testing.T) {
	for header, value := range map[string]string{"Upgrade": "websocket", "Sec-WebSocket-Protocol": "v5.channel.k8s.io"} {
		r := httptest.NewRequest("GET", "/api/v1/nodes/one/proxy/exec/shop/web-0/web", nil)
		if requests.Writes(r) {
			t.Error("without a header, it counts as writing")
		}
		r.Header.Set(header, value)
		if !requests.Writes(r) {
			t.Errorf("with the header %s, it counts as reading", header)
		}
	}
}
