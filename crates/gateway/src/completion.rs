//! Edits that finish although the client disconnects: half an edit, of a file
//! and not of the store beside it, would be worse than either.

/// Runs `work` in a task of its own and waits for it. Dropping the future does
/// not stop the work.
pub async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this wait with it.
            Err(_) => std::future::pending().await,
        },
    }
}
