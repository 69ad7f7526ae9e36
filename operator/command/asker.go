package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/inspector"
)

// maxAnswer is how many bytes of an answer are read: more than an inspector keeps of one object.
const maxAnswer = 64 << 20

// listPage is how many objects are asked for at once.
const listPage = 1000

// askingOptions say which inspector is asked, and as whom.
type askingOptions struct {
	address string
	caFile  string
	token   string
	// credentials has those of the kubeconfig, and is nil without one.
	credentials *rest.Config
}

func (o *askingOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "inspector-address", inspector.DefaultAddress, "host and port of the inspector of the operator that runs, after https:// if it has TLS")
	flags.StringVar(&o.caFile, "inspector-ca-file", "", "certificates of the authorities that the inspector's certificate may be from, in PEM (default those of the system)")
	flags.StringVar(&o.token, "token", "", "bearer token for the inspector (default that of the kubeconfig, which goes to https only)")
}

// asker asks an inspector.
type asker struct {
	client *http.Client
	base   url.URL
}

// asker returns who asks. It has a connection of its own, which is closed at the end.
func (o *askingOptions) asker() (*asker, error) {
	scheme, host, found := strings.Cut(o.address, "://")
	if !found {
		scheme, host = "http", o.address
	}
	if strings.Contains(host, "@") {
		// It stands in errors.
		return nil, &usageError{errors.New("--inspector-address: it must have no user or password in it: give a --token")}
	}
	if scheme != "http" && scheme != "https" {
		return nil, &usageError{fmt.Errorf("--inspector-address: it must begin with https://, http:// or the host, is %q", o.address)}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--inspector-ca-file: %w", err)}
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, &usageError{fmt.Errorf("--inspector-ca-file: there is no certificate in %s", o.caFile)}
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	}
	var credentials rest.Config
	switch {
	case o.token != "":
		credentials.BearerToken = o.token
	case scheme == "https" && o.credentials != nil:
		credentials = rest.Config{
			BearerToken: o.credentials.BearerToken, BearerTokenFile: o.credentials.BearerTokenFile,
			ExecProvider: o.credentials.ExecProvider, AuthProvider: o.credentials.AuthProvider,
		}
	}
	authenticated, err := rest.HTTPWrappersForConfig(&credentials, transport)
	if err != nil {
		return nil, fmt.Errorf("get a token for the inspector: %w", err)
	}
	client := &http.Client{
		Transport: authenticated,
		// An inspector sends nobody elsewhere, and the token is for it alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &asker{client: client, base: url.URL{Scheme: scheme, Host: strings.TrimSuffix(host, "/")}}, nil
}

// get asks for one thing. What the inspector says in place of an answer is an error.
func (a *asker) get(ctx context.Context, what string, query url.Values, answer any) error {
	fault := func(err error) error { return fmt.Errorf("ask the inspector at %s: %w", a.base.Host, err) }
	target := a.base
	target.Path, target.RawQuery = inspector.Path+"api/v1/"+what, query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return &usageError{fmt.Errorf("--inspector-address: %w", err)}
	}
	response, err := a.client.Do(request)
	if err != nil {
		return fault(fmt.Errorf("%w: is the operator running there, with its --inspector-address?", errors.Unwrap(err)))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fault(err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return fault(fmt.Errorf("%s: %s: give a --token, or a kubeconfig with one and an --inspector-address with https://", response.Status, clipped(body)))
	}
	if response.StatusCode != http.StatusOK {
		return fault(fmt.Errorf("%s: %s", response.Status, clipped(body)))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fault(fmt.Errorf("it does not answer as an inspector does: %w", err))
	}
	return nil
}

// find returns the one object that is meant.
func (a *asker) find(ctx context.Context, o explainOptions) (inspector.ObjectSummary, error) {
	var found []inspector.ObjectSummary
	for offset, total := 0, 1; offset < total; offset += listPage {
		var list inspector.ObjectList
		query := url.Values{"kind": {o.kind}, "name": {o.name}, "limit": {strconv.Itoa(listPage)}, "offset": {strconv.Itoa(offset)}}
		if err := a.get(ctx, "objects", query, &list); err != nil {
			return inspector.ObjectSummary{}, err
		}
		for _, s := range list.Objects {
			if s.Namespace == o.namespace || s.Namespace == "" {
				found = append(found, s)
			}
		}
		total = list.Total
	}
	switch len(found) {
	case 0:
		return inspector.ObjectSummary{}, fmt.Errorf("the operator at %s knows no %q in namespace %q: are KIND and --namespace right?%s",
			a.base.Host, strings.TrimSpace(o.kind+" "+o.name), o.namespace, a.troubles(ctx))
	case 1:
		return found[0], nil
	}
	return inspector.ObjectSummary{}, &usageError{fmt.Errorf("the frameworks %q and %q both have a %q: give one of them as KIND",
		found[0].Framework, found[1].Framework, o.name)}
}

// troubles says which sources lack something, and why: an object that is not known may be there. Without an answer it says nothing.
func (a *asker) troubles(ctx context.Context) string {
	var overview inspector.Overview
	if err := a.get(ctx, "overview", nil, &overview); err != nil {
		return ""
	}
	var lines []string
	for _, f := range overview.Frameworks {
		for _, s := range f.Sources {
			if s.Error != "" {
				lines = append(lines, fmt.Sprintf("\nsource %s is not in contact: %s", s.Name, s.Error))
			}
			if s.Unusable != "" {
				lines = append(lines, fmt.Sprintf("\nsource %s has got what it can't use: %s", s.Name, s.Unusable))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// clipped is the beginning of an answer that is not understood.
func clipped(body []byte) string {
	const most = 300
	return fmt.Sprintf("%.*q", most, body)
}
