// Package secretresource is a ready-made resource: the Secrets of a primary object.
//
//	tokens, err := secretresource.New(secretresource.Config[*v1alpha1.Website]{
//		Name:   "tokens",
//		Client: c,
//		Logger: logger,
//		Desired: func(ctx context.Context, site *v1alpha1.Website) ([]*corev1.Secret, error) {
//			return []*corev1.Secret{{
//				ObjectMeta: metav1.ObjectMeta{Name: site.Name},
//				StringData: map[string]string{"token": token},
//			}}, nil
//		},
//	})
//
// All promises of package objectresource hold. StringData may be used: it counts as the data that the server makes of it,
// so that a Secret is written only when it changes. Values appear in no patch, log line or error.
//
// Desired must be stable: a value that is made up anew at each call, such as a random password, is a change at each
// reconciliation. Read the Secret that is there first, and make up only what it lacks.
package secretresource
