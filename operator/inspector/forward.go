package inspector

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// forwardedHeader names the replica that passes a question on. Such a question goes no further.
const forwardedHeader = "X-Operatorkit-Replica"

const (
	// reachTimeout is how long another replica may take to be reached.
	reachTimeout = 2 * time.Second
	// othersTimeout is how long the others may take to say what they have.
	othersTimeout = 10 * time.Second
	// maxFromOther is how many bytes are read of what another replica says, and maxMerged how many objects of each replica are looked at
	// for a list of all.
	maxFromOther = 64 << 20
	maxMerged    = 10_000
)

// Page is how the page of a replica is reached.
type Page struct {
	// URL has the scheme and the host with the port.
	URL string
	// Certificate is the SHA-256 of the certificate in hexadecimal digits, with https: no other one is believed.
	Certificate string
}

// CertificateDigest returns the SHA-256 of the certificate with which the inspector is served, in hexadecimal digits, and nothing without TLS.
func (i *Inspector) CertificateDigest() string {
	if i.certificate == nil {
		return ""
	}
	current, err := i.certificate.get(nil)
	if err != nil {
		return ""
	}
	return digestOf(current.Certificate[0])
}

func digestOf(certificate []byte) string {
	digest := sha256.Sum256(certificate)
	return hex.EncodeToString(digest[:])
}

// byOwner has questions about one object answered by the replica that has it. Where that can't be reached this one answers, and says so.
func (i *Inspector) byOwner(next http.Handler) http.Handler {
	perObject := map[string]bool{
		Path + "object": true, Path + "events": true, Path + "api/v1/object": true, Path + "api/v1/graphs": true, Path + "api/v1/plan": true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ring := i.sharedBy()
		if ring == nil || !perObject[r.URL.Path] || r.Header.Get(forwardedHeader) != "" {
			next.ServeHTTP(w, r)
			return
		}
		key := idOf(r).key
		owner := ring.Owner(key)
		if key.Name == "" || owner == "" || owner == ring.This() {
			next.ServeHTTP(w, r)
			return
		}
		if err := i.forward(w, r, ring, owner); err != nil {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), unreachedKey{}, err.Error())))
		}
	})
}

// unreachedKey is that of why the replica that has the object was not asked.
type unreachedKey struct{}

// forward answers a request by what another replica answers. With an error nothing is answered.
func (i *Inspector) forward(w http.ResponseWriter, r *http.Request, ring Ring, owner string) error {
	target, transport, err := reach(ring, owner)
	if err != nil {
		return notReached(owner, err)
	}
	defer transport.CloseIdleConnections()
	takeLonger(w, r, i.config.PlanTimeout)
	if r.URL.Path == Path+"events" {
		w = messages{w}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-i.stopping:
			cancel()
		}
	}()
	var unreached error
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // what fails is in unreached, or the one who asks has gone
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			dress(p.Out, ring)
		},
		ModifyResponse: func(answer *http.Response) error {
			for name := range securityHeaders {
				answer.Header.Del(name) // they are there
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { unreached = notReached(owner, err) },
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
	return unreached
}

// reach returns the address of the page of another replica, and a transport that reaches nothing
// else that may be there. Its connections are not kept.
func reach(ring Ring, replica string) (*url.URL, *http.Transport, error) {
	page, err := ring.Page(replica)
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(page.URL)
	if err != nil {
		return nil, nil, err
	}
	dialer := net.Dialer{Timeout: reachTimeout}
	t := &http.Transport{DisableKeepAlives: true, TLSHandshakeTimeout: reachTimeout, DialContext: dialer.DialContext}
	t.TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The certificate is known, which is more than that somebody vouches for its name.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection: func(s tls.ConnectionState) error {
			if page.Certificate == "" || digestOf(s.PeerCertificates[0].Raw) != page.Certificate {
				return errors.New("it has another certificate than the replica says")
			}
			return nil
		},
	}
	return target, t, nil
}

func notReached(replica string, err error) error {
	return fmt.Errorf("the page of the replica %s can't be asked: %w", replica, err)
}

// dress makes a request one of this replica. What a browser says of where it comes from was looked at here.
func dress(r *http.Request, ring Ring) {
	r.Header.Set(forwardedHeader, ring.This())
	for name := range r.Header {
		if name == "Origin" || name == "Referer" || strings.HasPrefix(name, "Sec-Fetch-") {
			r.Header.Del(name)
		}
	}
}

// fromOthers asks all other replicas the same question. unreached says of which of them there is no answer, and why, in order.
func fromOthers[T any](r *http.Request, ring Ring, replicas []Replica, what string, query url.Values) (answers map[string]T, unreached []string) {
	ctx, cancel := context.WithTimeout(r.Context(), othersTimeout)
	defer cancel()
	answers = map[string]T{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, replica := range replicas {
		if replica.Name == "" || replica.Name == ring.This() {
			continue
		}
		asking.Go(func() {
			answer, err := fromOther[T](ctx, r, ring, replica.Name, what, query)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unreached = append(unreached, notReached(replica.Name, err).Error())
				return
			}
			answers[replica.Name] = answer
		})
	}
	asking.Wait()
	slices.Sort(unreached)
	return answers, unreached
}

func fromOther[T any](ctx context.Context, r *http.Request, ring Ring, replica, what string, query url.Values) (answer T, err error) {
	target, transport, err := reach(ring, replica)
	if err != nil {
		return answer, err
	}
	defer transport.CloseIdleConnections()
	target = target.JoinPath(Path, "api/v1", what)
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return answer, err
	}
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	dress(request, ring)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("it answers %s", response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxFromOther)).Decode(&answer)
	return answer, err
}
